"""A report's sheets as one HTML page that needs nothing else: no network, no library."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from spark.reports.figures import Bars, Cell, Column, FigureKind, Grid, Sheet, format_cell
from spark.reports.model import NamespaceReport
from spark.reports.units import full


def page_of(report: NamespaceReport, sheets: Sequence[Sheet]) -> str:
    at = datetime.fromtimestamp(report.source.as_of_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    environment = _environment()
    hashes = {
        kind: _hash_of(environment.get_template(f"page.{kind}").render()) for kind in ("css", "js")
    }
    page = environment.get_template("page.html")
    return page.render(source=report.source, at=at, sheets=sheets, hashes=hashes)


def _hash_of(text: str) -> str:
    """Return what a browser compares with an element's text, so that no other text is run."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("spark.reports"),
        # Style and script are ours and need no escaping; names of files and users do.
        autoescape=lambda name: name == "page.html",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "printable": _printable,
        "path": _path,
        "longest": _longest,
        "full": full,
        "written": lambda kind, cell: _printable(format_cell(kind, cell)),
        "brief": lambda kind, value: format_cell(kind, value, brief=True),
    }
    environment.tests |= {"grid": lambda figure: isinstance(figure, Grid), "exact_size": _is_size}
    return environment


def _printable(text: str) -> str:
    """Without what a browser would take for direction or line."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _path(path: Cell) -> Markup:
    """Mark where a long path may be broken: before a name rather than within one."""
    return escape(_printable(str(path))).replace("/", Markup("/<wbr>"))


def _longest(bars: Bars) -> float:
    """Return what a whole bar stands for; zero where there is nothing to draw."""
    found = max((abs(value) for _, row in bars.rows for value in row), default=0.0)
    return max(found, bars.scale) if found else 0.0


def _is_size(column_and_cell: tuple[Column, Cell]) -> bool:
    column, cell = column_and_cell
    return column.kind in {FigureKind.SIZE, FigureKind.SIZE_CHANGE} and isinstance(
        cell, int | float
    )
