"""HTML and JSX tags inside marked-up text: which are markup, and what words they hold themselves."""

from __future__ import annotations

import re
from typing import Final

from rag_pipeline.documents.edits import BREAK, GONE, Edit
from rag_pipeline.documents.link_words import image_words, is_badge

MAX_TAG_CHARS: Final = 4000
TAG: Final = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9.-]*+)"
    r"(?P<attributes>(?:[ \t\n/](?:[^<>\"'{}]++|\"[^\"]*+\"|'[^']*+'|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+)?)>"
)
"""A tag with its attributes, those of JSX included."""
_ATTRIBUTE = re.compile(
    r"\b(alt|title|label|summary|caption|src)[ \t]*=[ \t]*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>{]+))", re.IGNORECASE
)

_INLINE_WORDS = (
    "a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd mark picture q rp rt ruby s samp small span"
    " strike strong sub sup tt u wbr"
)
_INLINE: Final = frozenset(_INLINE_WORDS.split())
_BLOCK_WORDS = (
    "address article aside blockquote br caption center col colgroup dd details dialog div dl dt embed fieldset"
    " figcaption figure footer h1 h2 h3 h4 h5 h6 header hr iframe li main nav ol p section summary svg table tbody td"
    " tfoot th thead tr ul video audio canvas"
)
_BLOCK: Final = frozenset(_BLOCK_WORDS.split())
_DOUBTFUL_WORDS = (
    "area base body button data form head html input label link map menu meta object optgroup option output param path"
    " progress rect select source template textarea time title track var g circle use"
)
_DOUBTFUL: Final = frozenset(_DOUBTFUL_WORDS.split())
"""HTML's too, but as likely what a manual has the reader fill in: `<source> <output>`."""
_HIDDEN_WORDS = "dir font frame frameset hgroup legend marquee menuitem nobr noframes noscript script slot style"
_KNOWN: Final = _INLINE | _BLOCK | _DOUBTFUL | frozenset(_HIDDEN_WORDS.split())
_CLOSE_CHARS = 2000
_MAX_SCRIPT_CHARS: Final = 40
_NOT_RAISED: Final = re.compile(r"\s*(?:st|nd|rd|th|er?|re|[èe]me|[ao]|TM|SM|™|®|©|$)\s*$", re.IGNORECASE)
"""What is small only for its looks: 1<sup>st</sup>."""


def tag_words(text: str, tag: re.Match[str]) -> str | None:
    """What stands in the place of a tag: the words it shows, or a mark; None when it is text in angle brackets."""
    name, attributes = tag["name"], tag["attributes"]
    lower = name.lower()
    if lower == "img" or name == "Image":
        return _shown_image(attributes)
    if name[0].isupper() and lower != name and not (len(name) == 1 or name.isupper()):
        return _component(text, tag)
    if "." in name:
        return None
    if len(name) == 1 and name.isupper() and not attributes and text[tag.start() - 1 : tag.start()].isalnum():
        return None  # Option<A>
    if lower in ("sup", "sub") and not tag["close"]:
        inside = text[tag.end() : tag.end() + _MAX_SCRIPT_CHARS].partition("<")[0]
        return script_mark(lower, before=text[max(0, tag.start() - 1) : tag.start()], inside=inside) or GONE
    if lower in _INLINE:
        return GONE
    if lower in _BLOCK:
        return BREAK
    return BREAK if lower in _DOUBTFUL and _is_html(text, tag) else None


def is_known(name: str) -> bool:
    """Whether HTML has, or had, an element of this name, in small letters."""
    return name in _KNOWN


def script_mark(name: str, *, before: str, inside: str) -> str:
    """What keeps a raised or lowered part from running into the word before it: x^2, a_ij; empty where it is one word.

    `before` is what stands before it, and `inside` what is in it: 2<sup>31</sup> is not 231, but H<sub>2</sub>O is H2O.
    """
    if not (before[-1:].isalnum() or before[-1:] in (")", "]")) or not inside.strip():
        return ""
    if name == "sup":
        return "" if _NOT_RAISED.match(inside) else "^"
    return "_" if inside.strip()[0].isalpha() else ""


def spelt_out(text: str, tag: re.Match[str]) -> Edit | None:
    """What an abbreviation stands for, in brackets behind it."""
    meaning = _attributes(tag["attributes"]).get("title", "")
    close = text.find(f"</{tag['name']}>", tag.end(), tag.end() + _CLOSE_CHARS) if meaning else -1
    if close < 0 or text[tag.end() : close].strip() == meaning or "\n\n" in text[tag.end() : close]:
        return None
    return close, close, f" ({meaning})"


def _is_html(text: str, tag: re.Match[str]) -> bool:
    if tag["close"] or tag["attributes"].strip():
        return True
    return f"</{tag['name']}>" in text[tag.end() : tag.end() + _CLOSE_CHARS]


def _shown_image(attributes: str) -> str:
    found = _attributes(attributes)
    if is_badge(found.get("src", "")):
        return GONE
    return BREAK + image_words(found.get("alt", ""))


def _component(text: str, tag: re.Match[str]) -> str | None:
    """A component of JSX begins its line, or has attributes; else it may be a type, as in `List<String>`."""
    attributes = tag["attributes"]
    before = text[max(0, tag.start() - 200) : tag.start()].rstrip(" \t")
    begins = not before or before[-1] in "\n>"
    if not (begins or tag["close"] or "=" in attributes or attributes.endswith("/")):
        return None
    if not begins and before[-1:].isalnum() and not text[tag.start() - 1].isspace() and not tag["close"]:
        return None
    found = _attributes(attributes)
    words = [found[name] for name in ("title", "label", "summary", "caption", "alt") if found.get(name)]
    return BREAK + " ".join(words) + BREAK if words else BREAK


def _attributes(attributes: str) -> dict[str, str]:
    if "=" not in attributes:
        return {}
    return {
        found[1].lower(): " ".join((found[2] or found[3] or found[4] or "").split())
        for found in _ATTRIBUTE.finditer(attributes)
    }
