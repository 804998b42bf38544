"""Everything that is wrong with a configuration file at once, each with its line; touches nothing but that file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from rag_pipeline.errors import ConfigError
from rag_pipeline.settings.complaints import Complaint, Place, complaints_of
from rag_pipeline.settings.load import INTERNAL, config_path, read_toml, refused, values_of
from rag_pipeline.settings.model import Settings
from rag_pipeline.settings.positions import line_of, line_of_syntax_error, lines_of

_MOST_ROUNDS = 10  # each leaves more out; three are deep


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to put right, or to know."""

    file: str
    line: int | None
    """From 1; None: it stands nowhere in the file."""
    key: str
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.severity}: {self.key}: {self.message}"


@dataclass(slots=True, kw_only=True)
class CheckedFile:
    """What a look at a configuration file found."""

    path: Path
    settings: Settings | None = None
    """What the file says, without what is wrong; None when nothing can be made of it."""
    problems: list[Problem] = field(default_factory=list)
    lines: Mapping[Place, int] = field(default_factory=dict)

    def add(self, complaint: Complaint, *, severity: Literal["error", "warning"] = "error") -> None:
        """Note a problem; its line is looked up."""
        self.problems.append(
            Problem(
                file=str(self.path), line=line_of(complaint.place, self.lines), key=complaint.key,
                message=complaint.message, severity=severity,
            )
        )  # fmt: skip


def check_file(*, config_file: Path | None, environ: Mapping[str, str], cwd: Path) -> CheckedFile:
    """All that is wrong in the file that this process would read; an error hides no other.

    Raises:
        ConfigError: the file that was named does not exist.
    """
    checked = CheckedFile(path=config_path(config_file=config_file, environ=environ, cwd=cwd))
    written: dict[str, object] = {}
    if checked.path.is_file():
        try:
            written = read_toml(checked.path)
        except ConfigError as error:
            line = line_of_syntax_error(str(error))
            said = str(error).removeprefix(f"{checked.path} is ")
            checked.problems.append(Problem(file=str(checked.path), line=line, key="the file", message=said))
            return checked
        checked.lines = lines_of(checked.path.read_text(encoding="utf-8"))
    for internal in INTERNAL:
        if internal in written:
            checked.add(Complaint(place=(internal,), message=refused(internal)))
    checked.settings = _validated(values_of(written, checked.path, environ=environ, cwd=cwd), checked)
    return checked


def _validated(values: dict[str, object], checked: CheckedFile) -> Settings | None:
    """Validate, leave out what is wrong, and validate again: what one error hid comes to light."""
    seen: list[Place] = []
    for _ in range(_MOST_ROUNDS):
        try:
            return Settings.model_validate(values)
        except ValidationError as error:
            wrong = complaints_of(error)
        for complaint in wrong:
            if not _follows(complaint.place, seen):
                checked.add(complaint)
        seen += [complaint.place for complaint in wrong]
        # A whole block that is wrong cannot be left out: those after it would change their numbers.
        if any(not complaint.place or isinstance(complaint.place[-1], int) for complaint in wrong):
            return None
        for complaint in wrong:
            _leave_out(values, complaint.place)
    return None


def _follows(place: Place, left_out: Sequence[Place]) -> bool:
    """Whether a complaint is of what leaving something out has made, and no fault of the file.

    What is wrong with the file as a whole is wrong between its blocks.
    """
    if not place:
        return any(isinstance(part, int) for other in left_out for part in other)
    return any(place == other[: len(place)] for other in left_out)


def _leave_out(values: object, place: Sequence[str | int]) -> None:
    """Remove the innermost thing of the place that the file really holds."""
    for part in place:
        inner = _inside(values, part)
        if part == place[-1] or not isinstance(inner, dict | list):
            break
        values = inner
    if isinstance(values, dict):
        values.pop(part, None)


def _inside(values: object, part: str | int) -> object:
    if isinstance(values, dict):
        return values.get(part)
    if isinstance(values, list) and isinstance(part, int) and part < len(values):
        return values[part]
    return None
