"""A report's sheets as one HTML page that needs nothing beside it: no network, no library."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from spark.reports.figures import Bars, Cell, Column, Grid, Kind, Sheet, written
from spark.reports.model import Report
from spark.reports.page_style import SCRIPT, STYLE
from spark.reports.units import full

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page_of(report: Report, sheets: Sequence[Sheet]) -> str:
    """The whole page."""
    source = report.source
    at = datetime.fromtimestamp(source.as_of_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    links = " ".join(f'<a href="#{sheet.key}">{escape(sheet.title)}</a>' for sheet in sheets)
    facts = (
        f"Image <b>{_text(source.image)}</b>, transaction {full(source.txid)}, "
        f"{full(source.inodes)} inodes, {at}."
    )
    body = "\n".join(map(_sheet, sheets))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Namespace report, transaction {source.txid}</title>\n"
        f"<style>{STYLE}</style></head>\n"
        f"<body><header><h1>Namespace report</h1><p>{facts}</p><nav>{links}</nav>\n"
        '<button type="button" id="open">Open all tables</button></header>\n'
        f"<main>{body}</main>\n<script>{SCRIPT}</script></body></html>\n"
    )


def _text(text: str) -> str:
    """Escaped, and without what a browser would take for direction or line."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in text))


def _path(path: str) -> str:
    """Where a long path may be broken: before a name rather than within one."""
    return _text(path).replace("/", "/<wbr>")


def _sheet(sheet: Sheet) -> str:
    figures = "\n".join(
        _grid(figure) if isinstance(figure, Grid) else _bars(figure) for figure in sheet.figures
    )
    return (
        f'<section id="{sheet.key}"><h2>{escape(sheet.title)}</h2>'
        f"<p>{_text(sheet.lead)}</p>\n{figures}</section>"
    )


def _bars(bars: Bars) -> str:
    found = max((abs(value) for _, row in bars.rows for value in row), default=0.0)
    if not found:
        return ""
    longest = max(found, bars.scale)
    legend = ""
    if any(bars.series):
        keys = (
            f'<span><i class="s{number}"></i>{escape(name)}</span>'
            for number, name in enumerate(bars.series)
        )
        legend = f'<div class="legend">{"".join(keys)}</div>'
    draw = _both_ways if bars.both_ways else _one_way
    rows = "\n".join(
        f'<div class="label">{_path(label)}</div><div>{draw(bars, values, longest)}</div>'
        for label, values in bars.rows
    )
    return (
        f'<figure id="{bars.name}"><figcaption>{_text(bars.title)}</figcaption>{legend}'
        f'<div class="bars">{rows}</div>{_note(bars.note)}</figure>'
    )


def _one_way(bars: Bars, values: Sequence[float], longest: float) -> str:
    return "".join(
        f'<div class="bar">{_bar(number, value, longest)}'
        f"<span>{written(bars.kind, value, brief=True)}</span></div>"
        for number, value in enumerate(values)
    )


def _both_ways(bars: Bars, values: Sequence[float], longest: float) -> str:
    left = min(0.0, *values)
    right = max(0.0, *values)
    colours = (1, 0)
    sides = []
    for side, value, colour in zip(("left", "right"), (left, right), colours, strict=True):
        number = f"<span>{written(bars.kind, value, brief=True)}</span>" if value else ""
        sides.append(f'<div class="bar {side}">{_bar(colour, value, longest)}{number}</div>')
    return f'<div class="two">{"".join(sides)}</div>'


def _bar(series: int, value: float, longest: float) -> str:
    if not value:
        return ""
    share = abs(value) / longest
    return f'<i class="s{series}" style="--w:{share:.4f}"></i>'


def _grid(grid: Grid) -> str:
    if not grid.rows:
        return f'<p class="note">{_text(grid.title)}: none</p>'
    head = "".join(
        f'<th{_side(column, number)}><button type="button">{_text(column.name)}</button></th>'
        for number, column in enumerate(grid.columns)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(
            _cell(column, cell, number)
            for number, (column, cell) in enumerate(zip(grid.columns, row, strict=True))
        )
        + "</tr>"
        for row in grid.rows
    )
    return (
        f"<details><summary>{_text(grid.title)}</summary>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_note(grid.note)}</details>"
    )


def _note(note: str) -> str:
    return f'<p class="note">{_text(note)}</p>' if note else ""


def _side(column: Column, number: int) -> str:
    return ' class="name"' if number == 0 else ""


def _cell(column: Column, cell: Cell, number: int) -> str:
    shown = _text(written(column.kind, cell))
    if number == 0:
        return f'<td class="name">{_path(str(cell))}</td>'
    exact = "" if isinstance(cell, str) else f' data-v="{-1 if cell is None else cell}"'
    title = ""
    if column.kind in {Kind.SIZE, Kind.SIZE_CHANGE} and isinstance(cell, int | float):
        title = f' title="{full(cell)} bytes"'
    return f"<td{exact}{title}>{shown}</td>"
