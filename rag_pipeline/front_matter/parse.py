"""The values of front matter: YAML or TOML, as what JSON can hold, with the lines that its keys stand on."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time
from typing import Final

import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own, not needed to run

from rag_pipeline.errors import BrokenFrontMatter
from rag_pipeline.front_matter.keys import ACCESS_KEYS, similar_key
from rag_pipeline.model import Json

Clean = Callable[[str], str]

_MAX_BITS: Final = 1000  # Python writes no number of thousands of digits
_TOML_KEY: Final = re.compile(r"[ \t]*[\"']?([^\s\"'=\[\]#.]+)[\"']?[ \t]*[=.]")
_TOML_LINE: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")
_TOO_DEEP: Final = "it is nested too deeply"


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # untyped base
    """Safe YAML without aliases: a few of them nested make gigabytes ("billion laughs")."""

    def compose_node(self, parent: object, index: object) -> object:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases are not followed in front matter", problem_mark=self.peek_event().start_mark
            )
        return super().compose_node(parent, index)


def read_yaml(source: str, clean: Clean) -> tuple[Mapping[str, Json], Mapping[str, int]]:
    """The values of a YAML mapping, and the line of each key.

    Raises:
        BrokenFrontMatter: it is no YAML mapping, holds a key twice, or an access key that says nothing.
    """
    loader = None
    try:
        loader = _Loader(source)
        node = loader.get_single_node()
        if node is None:
            return {}, {}
        if not isinstance(node, yaml.MappingNode):
            raise BrokenFrontMatter(node.start_mark.line + 1, "it holds no keys and values")
        _check_mappings(node)
        values = loader.construct_document(node)
        lines = {clean(str(_json(loader.construct_object(key), clean))): _line(key) for key, _ in node.value}
        return _mapping(values, clean), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BrokenFrontMatter(mark.line + 1 if mark else 1, _said(error)) from None
    except yaml.reader.ReaderError as error:
        line = source.count("\n", 0, error.position) + 1
        raise BrokenFrontMatter(line, f"it holds the character {error.character!a}") from None
    except RecursionError:
        raise BrokenFrontMatter(1, _TOO_DEEP) from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, OverflowError, AttributeError) as error:
        raise BrokenFrontMatter(1, " ".join(str(error).split())[:200] or type(error).__name__) from None
    finally:
        if loader is not None:
            loader.dispose()


def read_toml(source: str, clean: Clean) -> tuple[Mapping[str, Json], Mapping[str, int]]:
    """The values of a TOML document, and the line of each key as far as it is seen.

    Raises:
        BrokenFrontMatter: it is no TOML.
    """
    text = re.sub("\r\n?", "\n", source)
    try:
        values = _mapping(tomllib.loads(text), clean)
    except tomllib.TOMLDecodeError as error:
        at = _TOML_LINE.search(str(error))
        line = int(at[1]) if at and at[1] else text.count("\n")
        raise BrokenFrontMatter(max(line, 1), _TOML_LINE.sub("", str(error))) from None
    except RecursionError:
        raise BrokenFrontMatter(1, _TOO_DEEP) from None
    except ValueError as error:  # a number of thousands of digits
        raise BrokenFrontMatter(1, str(error)) from None
    lines: dict[str, int] = {}
    for number, line_text in enumerate(text.split("\n"), start=1):
        if key := _TOML_KEY.match(line_text):
            lines.setdefault(key[1], number)
    return values, lines


def nested_keys(values: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Every key and value below the top."""
    left: list[Json] = [*values.values()]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            yield from value.items()
            left += value.values()
        elif isinstance(value, list):
            left += value


def _check_mappings(top: yaml.MappingNode) -> None:
    left: list[yaml.Node] = [top]
    while left:
        node = left.pop()
        if isinstance(node, yaml.SequenceNode):
            left += node.value
        if not isinstance(node, yaml.MappingNode):
            continue
        seen: set[str] = set()
        for key, value in node.value:
            left.append(value)
            if not isinstance(key, yaml.ScalarNode):
                raise BrokenFrontMatter(_line(key), "a key of it is no plain word")
            if key.value in seen:
                raise BrokenFrontMatter(_line(key), f"it holds the key {key.value[:60]!r} twice")
            seen.add(key.value)
            is_blank = isinstance(value, yaml.ScalarNode) and not value.value and value.style is None
            if node is top and is_blank and similar_key(key.value) in ACCESS_KEYS:
                raise BrokenFrontMatter(
                    _line(key), f"{key.value[:60]} has no value: give one, or leave the key out for everyone to see it"
                )


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _said(error: yaml.MarkedYAMLError) -> str:
    said = [str(part) for part in (error.problem, error.context) if part]
    return ", ".join(" ".join(part.split()) for part in said)[:200] or "it is no YAML"


def _mapping(value: object, clean: Clean) -> Mapping[str, Json]:
    found = _json(value, clean)
    assert isinstance(found, Mapping)
    return found


def _json(value: object, clean: Clean) -> Json:
    """The value with everything that JSON cannot hold as text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return hex(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {clean(str(_json(key, clean))): _json(item, clean) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [_json(item, clean) for item in sorted(value, key=str)]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_json(item, clean) for item in value]
    return clean(str(value))
