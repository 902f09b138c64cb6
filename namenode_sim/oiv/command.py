"""``nnha oiv``: view an fsimage offline, with the options of Hadoop's ``hdfs oiv``."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from ha.console.exit_codes import HADOOP_FAILURE
from namenode_sim.image.errors import ImageError
from namenode_sim.oiv.delimited import Columns
from namenode_sim.oiv.opened import ReportRead
from namenode_sim.oiv.viewer import PROCESSORS, Options, Processor, process

_BUFFER_CHARS: Final = 1 << 20


@click.command(context_settings={"show_default": True})
@click.option(
    "-i", "--inputFile", "source", required=True, type=click.Path(path_type=Path),
    help="The fsimage to view.",
)  # fmt: skip
@click.option(
    "-o", "--outputFile", "target", default="-", type=click.Path(path_type=Path, allow_dash=True),
    help="Where to write; it is replaced when all is written.",
)  # fmt: skip
@click.option(
    "-p", "--processor", "name", required=True, metavar="|".join(PROCESSORS),
    help="What to make of it; JSON is one object a line.",
)  # fmt: skip
@click.option("-delimiter", "--delimiter", default="\t", help="Delimited: between the columns.")
@click.option(
    "-t", "--temp", "temporary", type=click.Path(path_type=Path),
    help="Delimited, DetectCorruption: a new folder for what would else be in memory.",
)  # fmt: skip
@click.option("-sp", "storage_policy", is_flag=True, help="Delimited: print storage policies.")
@click.option("-ec", "ec_policy", is_flag=True, help="Delimited: print erasure coding policies.")
@click.option("-maxSize", "max_size", default=0, help="FileDistribution: 0 is 128 GiB.")
@click.option("-step", "step", default=0, help="FileDistribution: 0 is 2 MiB.")
@click.option("-format", "readable", is_flag=True, help="FileDistribution: sizes for people.")
@click.option(
    "--hadoop", type=click.Choice(["2", "3"]),
    help="XML: whose form; by default that of the release line that wrote the image.",
)  # fmt: skip
def oiv(  # noqa: PLR0913 - as many as Hadoop's has
    *,
    source: Path,
    target: Path,
    name: str,
    delimiter: str,
    temporary: Path | None,
    storage_policy: bool,
    ec_policy: bool,
    max_size: int,
    step: int,
    readable: bool,
    hadoop: str | None,
) -> None:
    """View an fsimage offline.

    Exit codes: 0 done, 2 wrong usage, 255 (Hadoop's -1) the image cannot be read or the view not
    written; the reason is on standard error.
    """
    processor = _processor(name)
    if max_size < 0 or step < 0:
        raise click.UsageError("-maxSize and -step must not be negative.")
    _spare_image(source, target)
    options = Options(
        hadoop=int(hadoop) if hadoop else None,
        columns=Columns(delimiter, storage_policy, ec_policy),
        temporary=temporary,
        max_size=max_size,
        step=step,
        readable=readable,
    )
    try:
        with source.open("rb") as file, _output(target) as out, shown_progress() as report:
            remark = process(processor, file, out, options, report)
    except BrokenPipeError:
        # The reader has seen enough; there is no more use for standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(HADOOP_FAILURE)
    except ImageError as problem:
        click.echo(f"oiv: {source} cannot be viewed: {problem}", err=True)
        sys.exit(HADOOP_FAILURE)
    except OSError as problem:
        click.echo(f"oiv: {problem}", err=True)
        sys.exit(HADOOP_FAILURE)
    if remark:
        click.echo(f"oiv: {remark}", err=True)


def _spare_image(source: Path, target: Path) -> None:
    """Refuse to overwrite an image with its view: it may be the only copy."""
    for path in (target, _beside(target)):
        if path.exists() and source.exists() and path.samefile(source):
            raise click.UsageError(f"writing to {target} would overwrite the image")


def _beside(target: Path) -> Path:
    return target.with_name(target.name + ".tmp")


def _processor(name: str) -> Processor:
    for known, processor in PROCESSORS.items():
        if known.lower() == name.lower():
            return processor
    click.echo(
        f"oiv: there is no processor {name!r} here; there are {', '.join(PROCESSORS)}", err=True
    )
    sys.exit(HADOOP_FAILURE)


@contextmanager
def _output(target: Path) -> Iterator[TextIO]:
    """Open standard output, a device, or a file that gets its name when it is whole."""
    if str(target) == "-":
        if sys.stdout is None:
            raise OSError("standard output is closed")
        out = io.TextIOWrapper(sys.stdout.buffer, "utf-8", newline="\n", write_through=False)
        try:
            yield out
            out.flush()
        finally:
            out.detach()
        return
    if target.exists() and not target.is_file():
        with target.open("w", _BUFFER_CHARS, "utf-8", newline="\n") as out:
            yield out
        return
    beside = _beside(target)
    try:
        with beside.open("w", _BUFFER_CHARS, "utf-8", newline="\n") as out:
            yield out
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def shown_progress() -> Iterator[ReportRead | None]:
    """Yield a function that shows the progress; None if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} records"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def report(section: str, count: int) -> None:
            if section not in tasks:
                tasks[section] = progress.add_task(section, total=None)
            progress.advance(tasks[section], count)

        yield report
