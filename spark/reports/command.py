"""``nnha namespace report``: what an exported namespace holds, as tables, pictures and a page."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click

from ha.conf.errors import BadValue
from ha.conf.keys import units
from ha.console.exit_codes import FAILED, USAGE
from ha.console.output import console
from ha.console.result import API_VERSION
from spark.reports.export import open_export
from spark.reports.model import ExportDamaged, NamespaceReport, NotAnExport, Section, Settings
from spark.reports.page import page_of
from spark.reports.pictures import NoMatplotlib, draw, ensure_drawable
from spark.reports.report import make_report
from spark.reports.sheets.sheets import sheets_of
from spark.reports.text import show_sheets


@click.command("report")
@click.argument("export", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice([section.value for section in Section]),
    help="Only this section; may be given more than once.  Default: all.",
)
@click.option(
    "--since",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="An older export of the same namespace: shows growth.",
)
@click.option("--top", type=click.IntRange(1, 10_000), default=20, show_default=True,
              help="Length of the lists.")  # fmt: skip
@click.option(
    "--small-below", default="1m", show_default=True, help="Files below this size are small."
)
@click.option("--cold-days", type=click.IntRange(1, 36_500), default=365, show_default=True,
              help="Files that were not used for this many days are cold.")  # fmt: skip
@click.option("--png", "pictures", type=click.Path(path_type=Path, file_okay=False),
              help="Draw the charts into this folder.")  # fmt: skip
@click.option("--html", "page", type=click.Path(path_type=Path, dir_okay=False),
              help="Write everything as one page that needs nothing beside it.")  # fmt: skip
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def report(  # noqa: PLR0913 - one parameter an option
    *,
    export: Path,
    sections: Sequence[str],
    since: Path | None,
    top: int,
    small_below: str,
    cold_days: int,
    pictures: Path | None,
    page: Path | None,
    output: str,
) -> None:
    """Report on EXPORT, a folder that nnha namespace export has made.

    Exit codes: 0 done, 2 wrong usage or no export of ours, 4 the export is damaged or an output
    cannot be written.
    """
    wanted = {Section(name) for name in sections} or set(Section)
    if since is None and Section.GROWTH in {Section(name) for name in sections}:
        raise click.UsageError("growth needs an older export: --since")
    try:
        if pictures is not None:
            ensure_drawable()
        opened = open_export(export)
        settings = Settings(
            as_of_ms=opened.source.as_of_ms,
            small_below=_size(small_below),
            cold_days=cold_days,
            top=top,
        )
        older = None if since is None else open_export(since)
        _put(make_report(opened, settings, wanted, older), pictures, page, output)
    except (NotAnExport, NoMatplotlib) as error:
        _end(USAGE, str(error))
    except (ExportDamaged, OSError) as error:
        _end(FAILED, str(error))


def _size(text: str) -> int:
    try:
        found = units.size(text)
    except BadValue as error:
        raise click.BadParameter(str(error), param_hint="--small-below") from error
    if found <= 0:
        raise click.BadParameter("must be more than 0", param_hint="--small-below")
    return found


def _put(made: NamespaceReport, pictures: Path | None, page: Path | None, output: str) -> None:
    sheets = sheets_of(made)
    if pictures is not None:
        drawn = draw(sheets, pictures)
        click.echo(f"report: {len(drawn)} pictures in {pictures}", err=True)
    if page is not None:
        _write(page, page_of(made, sheets))
        click.echo(f"report: {page}", err=True)
    match output:
        case "json":
            click.echo(json.dumps(document_of(made), indent=2))
        case _:
            show_sheets(console(), sheets)


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a web server may be serving the page."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _end(code: int, message: str) -> NoReturn:
    click.echo(f"report: {message}", err=True)
    sys.exit(code)


def document_of(report: NamespaceReport) -> dict[str, Any]:
    """Return the report as JSON's values, with every key; a section not asked for is null."""
    sections = {section.value: section.value.replace("-", "_") for section in Section}
    found = {
        name: getattr(report, field) and asdict(getattr(report, field))
        for name, field in sections.items()
    }
    return {
        "apiVersion": API_VERSION,
        "command": "namespace report",
        "source": asdict(report.source),
        "settings": asdict(report.settings),
        "sections": {name: _to_lists(part) for name, part in found.items()},
    }


def _to_lists(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _to_lists(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_to_lists(entry) for entry in value]
    return value
