"""What a benchmark found: figures with units and limits, and checks that must hold; as tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rag_pipeline.cli.console import out, rows_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value."""

    section: str
    name: str
    value: float
    unit: str
    at_most: float | None = None
    """What it is meant to stay under."""
    note: str = ""

    @property
    def over(self) -> bool:
        return self.at_most is not None and self.value > self.at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something that must hold whatever the machine."""

    section: str
    name: str
    holds: bool
    detail: str = ""


@dataclass(kw_only=True)
class Report:
    """Figures and checks, printed section by section as they come."""

    settings: Mapping[str, str]
    figures: list[Figure] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def figure(
        self, section: str, name: str, value: float, unit: str, *, at_most: float | None = None, note: str = ""
    ) -> None:
        """Note a measured value."""
        self.figures.append(Figure(section=section, name=name, value=value, unit=unit, at_most=at_most, note=note))

    def check(self, section: str, name: str, holds: bool, detail: str = "") -> None:
        """Note whether something holds; `detail` says what was found."""
        self.checks.append(Check(section=section, name=name, holds=holds, detail=detail))

    def show(self, section: str) -> None:
        """Print one section."""
        rows = [
            (f.name, _number(f.value), f.unit, f"≤ {f.at_most:g}" if f.at_most is not None else "", _verdict(f), f.note)
            for f in self.figures
            if f.section == section
        ]
        out.print()
        if rows:
            out.print(rows_table(section, (section, "value", "unit", "limit", "", "note"), rows), soft_wrap=False)
        for check in self.checks:
            if check.section == section:
                out.print(f"{'holds ' if check.holds else 'BROKEN'}  {check.name}", markup=False)
                if check.detail:
                    out.print(check.detail, markup=False)

    def failed(self, *, strict: bool) -> bool:
        """Whether a check is broken; with `strict` also whether a figure is over its limit."""
        return any(not check.holds for check in self.checks) or (strict and any(figure.over for figure in self.figures))

    def save(self, path: Path) -> None:
        """Write all as JSON."""
        found = {
            "settings": dict(self.settings),
            "figures": [asdict(figure) | {"over": figure.over} for figure in self.figures],
            "checks": [asdict(check) for check in self.checks],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.2f}"


def _verdict(figure: Figure) -> str:
    if figure.at_most is None:
        return ""
    return "OVER" if figure.over else "ok"
