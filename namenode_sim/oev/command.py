"""``nnha oev``: Hadoop's offline edits viewer, and its edits as JSON lines."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from namenode_sim.edits.errors import EditsError
from namenode_sim.oev.events import Event, Lost, Sink, Source, renumbered
from namenode_sim.oev.json_lines import JsonLinesSink, JsonLinesSource
from namenode_sim.oev.sinks import BinarySink, StatsSink, XmlSink
from namenode_sim.oev.sources import BinarySource, open_source

HADOOP_FAILURE: Final = 255
"""Hadoop's -1, as a shell sees it; its oev fails with nothing else."""
STDOUT: Final = Path("-")
PROCESSORS: Final = ("xml", "binary", "stats", "jsonl")
_OUTPUT_BUFFER_BYTES: Final = 1 << 20
_BIG_FILE_BYTES: Final = 16 << 20
_EVENTS_PER_STEP: Final = 2000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-i",
    "--input",
    "--inputFile",
    "--inputFilename",
    "source_path",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The edits: XML if the name ends in .xml, JSON lines if in .jsonl or if the content "
    "looks so, else binary.",
)
@click.option(
    "-o",
    "--output",
    "--outputFile",
    "--outputFilename",
    "target_path",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Where to write; overwritten if it exists; - is standard output.",
)
@click.option(
    "-p",
    "--processor",
    default="xml",
    show_default=True,
    type=click.Choice(PROCESSORS, case_sensitive=False),
    help="What to write.",
)
@click.option(
    "-f", "--fix-txids", is_flag=True, help="Renumber the transactions, so that none is missing."
)
@click.option(
    "-r", "--recover", is_flag=True, help="Go on behind damage, and tell what was skipped."
)
@click.option("-v", "--verbose", is_flag=True, help="Name the files, and print the output too.")
def oev(
    *,
    source_path: Path,
    target_path: Path,
    processor: str,
    fix_txids: bool,
    recover: bool,
    verbose: bool,
) -> None:
    """Show an edit log as XML (as Hadoop's oev), JSON lines or statistics, or make one of these.

    XML lacks some fields, as Hadoop's does; JSON lines convert back to the same bytes.

    Exit codes: 0 done, 2 wrong usage, 255 the edits are damaged or cannot be read or written;
    the edits before the damage have been written then.
    """
    if target_path.exists() and target_path.samefile(source_path):
        raise click.UsageError("the output would overwrite the input")
    if verbose:
        click.echo(f"input  [{source_path}]\noutput [{target_path}]")
    recoverable = False
    try:
        with source_path.open("rb") as file:
            source = open_source(file, source_path, recover=recover)
            # Behind its header: without one, recovery does not know how to read either.
            recoverable = isinstance(source, BinarySource)
            with output_to(target_path, echo=verbose and processor != "binary") as out:
                _convert(source, _sink(processor, out, source), fix_txids=fix_txids)
    except BrokenPipeError:
        sys.exit(HADOOP_FAILURE)  # the reader of our output has seen enough
    except (EditsError, OSError) as problem:
        click.echo(f"oev: {problem}", err=True)
        if isinstance(problem, EditsError) and recoverable and not recover:
            click.echo("oev: with --recover it goes on behind the damage", err=True)
        sys.exit(HADOOP_FAILURE)


def convert(processor: str, source: Source, out: BinaryIO) -> None:
    """Write a source in the form that a processor's name stands for."""
    _convert(source, _sink(processor, out, source), fix_txids=False)


def _sink(processor: str, out: BinaryIO, source: Source) -> Sink:
    match processor:
        case "binary":
            return BinarySink(out, exact=isinstance(source, JsonLinesSource))
        case "stats":
            return StatsSink(out)
        case "jsonl":
            return JsonLinesSink(out)
        case _:
            return XmlSink(out)


def _convert(source: Source, sink: Sink, *, fix_txids: bool) -> None:
    """Pass all parts on; what stands before damage is finished like a whole file."""
    events = _watch(source)
    try:
        for event in renumbered(events) if fix_txids else events:
            if isinstance(event, Lost):
                click.echo(f"oev: {event.skipped}", err=True)
            sink.take(event)
    finally:
        sink.finish()


def _watch(source: Source) -> Iterator[Event]:
    """Yield the source's events, with progress on a terminal if there are many."""
    console = Console(stderr=True)
    if source.size < _BIG_FILE_BYTES or not console.is_terminal:
        yield from source.events()
        return
    columns = ("reading edits", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=source.size)
        for count, event in enumerate(source.events()):
            if count % _EVENTS_PER_STEP == 0:
                progress.update(task, completed=source.position)
            yield event


class _Tee:
    """Writes to a file and to standard output (oev's ``--verbose``)."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        sys.stdout.buffer.write(data)
        return self._file.write(data)


@contextmanager
def output_to(path: Path, *, echo: bool = False) -> Iterator[BinaryIO]:
    if path == STDOUT:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb", buffering=_OUTPUT_BUFFER_BYTES) as file:
        yield cast(BinaryIO, _Tee(file)) if echo else file
    if sys.stdout is not None:
        sys.stdout.buffer.flush()
