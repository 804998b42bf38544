"""The report as one HTML page that loads nothing from anywhere; whatever comes from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rag_pipeline.reporting import words
from rag_pipeline.reporting.sections import SECTIONS, Block, Cell, Chart, Table, shown_cell
from rag_pipeline.reporting.style import STYLE
from rag_pipeline.reporting.summary import Report, Summary, summarise

_LONG = 48  # characters of a cell that is better broken into lines
TITLE = "What the knowledge index holds"


def page(report: Report) -> str:
    """The whole page."""
    summary = summarise(report)
    sections = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>'
        f"{''.join(map(_html, body(report, summary)))}</section>"
        ""
        for name, title, body in SECTIONS
    )
    links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title, _ in SECTIONS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Nothing may be loaded or run, even if something got past the escaping.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="color-scheme" content="light dark">'
        f"<title>{TITLE}</title><style>{STYLE}</style></head><body><header><h1>{TITLE}</h1>"
        f"<p>Made {words.moment(report.made_at)} UTC. Charts and rates begin on {report.first}.</p>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header><main>{_cards(summary)}{sections}</main>'
        "</body></html>\n"
    )


def _cards(summary: Summary) -> str:
    cards = "".join(
        f'<div class="card{" alarm" if alarm else ""}"><dt>{escape(name)}</dt>'
        f"<dd>{escape(value)}<small>{escape(remark)}</small></dd></div>"
        for name, value, remark, alarm in key_numbers(summary)
    )
    return f'<dl class="cards">{cards}</dl>'


def key_numbers(summary: Summary) -> Sequence[tuple[str, str, str, bool]]:
    """(name, value, remark, whether somebody should look at it) of the numbers that matter most."""
    s = summary
    sources = f"{s.sources:,} repositories" if s.sources != 1 else "1 repository"
    stalest = "no source was measured yet" if s.largest_lag is None else "of the stalest source"
    return [
        ("Documents", words.number(s.documents), sources, not s.documents),
        ("Chunks", words.number(s.chunks), f"{words.number(s.tokens)} tokens", False),
        ("Failures waiting", words.number(s.failures), "see below" if s.failures else "none", bool(s.failures)),
        (
            "Largest lag", words.span(s.largest_lag),
            f"{s.unfinished} not wholly indexed" if s.unfinished else stalest, bool(s.unfinished),
        ),
        (
            "nDCG@10", "–" if s.quality is None else f"{s.quality:.3f}",
            "not evaluated" if s.quality is None else "newest evaluation", False,
        ),
        ("Reused vectors", words.share(s.reuse_share), "of the texts of all runs shown", False),
        ("Cost this month", words.money(s.cost_usd), "all tenants and models", False),
        ("Storage", words.bytes_of(s.database_bytes), f"and {words.bytes_of(s.lake_bytes)} in the lake", False),
    ]  # fmt: skip


def _html(block: Block) -> str:
    match block:
        case Chart():
            return block.svg
        case Table():
            return _table(block)
        case _:
            # Marks of code are ours; the words between them may come from data.
            pieces = [escape(piece) for piece in block.split("`")]
            return "<p>" + "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(pieces)) + "</p>"


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    head = "".join(
        f'<th scope="col"{_side(n, table.numeric)}>{escape(text)}</th>' for n, text in enumerate(table.headers)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{_side(n, table.numeric, c)}>{escape(shown_cell(c))}</td>" for n, c in enumerate(row))
        + "</tr>"
        for row in table.shown
    )
    hidden = len(table.rows) - len(table.shown)
    more = f'<p class="more">{hidden:,} more are not shown.</p>' if hidden else ""
    caption = escape(table.caption)
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{caption}"><table>'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"
    )


def _side(column: int, numeric: Sequence[int], cell: Cell = None) -> str:
    if column in numeric:
        return ' class="n"'
    return ' class="long"' if isinstance(cell, str) and len(cell) > _LONG else ""
