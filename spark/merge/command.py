"""``nnha checkpoint merge``: make a newer image from files, without a NameNode."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import click
from rich import progress as bars
from rich.console import Console

from ha.daemon.logs import configure_logging
from namenode_sim.checkpoint.merge import Merged, Progress, merge
from namenode_sim.checkpoint.publication import MergeRefused
from namenode_sim.edits.errors import EditsError
from namenode_sim.image.errors import ImageError
from namenode_sim.storage_errors import StorageError

EXIT_REFUSED: Final = 3
EXIT_FAILED: Final = 4
_SECONDS_BETWEEN_LINES: Final = 5.0


@click.command("merge")
@click.option(
    "--engine",
    type=click.Choice(["local"]),
    default="local",
    show_default=True,
    help="local: one process that holds the whole namespace.",
)
@click.option(
    "--image",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="fsimage_N, with its .md5 beside it.",
)
@click.option(
    "--edits",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A directory with the finalized edits_* behind it (or with current/ that has them).",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where fsimage_M and its .md5 are put.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def merge_command(*, engine: str, image: Path, edits: Path, out: Path, as_json: bool) -> None:
    """Replay edits on an image and save the result as a newer image.

    A second run with the same input finds its image there and changes nothing.

    Exit codes: 0 the image is there, 2 wrong usage, 3 another image of that transaction is in the
    way and nothing was changed, 4 something is damaged or missing and nothing was published.
    """
    configure_logging("checkpoint", level="warning")
    began = time.monotonic()
    try:
        with _shown() as tell:
            result = merge(image, edits, out, progress=tell)
    except (MergeRefused, StorageError) as refusal:
        _end(EXIT_REFUSED, str(refusal))
    except (EditsError, ImageError, OSError) as failure:
        _end(EXIT_FAILED, f"{failure}. Nothing was published.")
    _report(result, engine, time.monotonic() - began, as_json=as_json)


def _end(code: int, message: str) -> NoReturn:
    click.echo(f"checkpoint: {message}", err=True)
    sys.exit(code)


def _report(result: Merged, engine: str, seconds: float, *, as_json: bool) -> None:
    if as_json:
        facts = {
            "image": str(result.image),
            "engine": engine,
            "from_txid": result.from_txid,
            "to_txid": result.to_txid,
            "segments": result.segments,
            "inodes": result.inodes,
            "md5": result.digest,
            "already_there": result.already_there,
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts))
        return
    edits = result.to_txid - result.from_txid
    what = "was there already, the same" if result.already_there else "saved"
    click.echo(
        f"checkpoint: {result.image} {what}: {edits} edits of {result.segments} segments, "
        f"{result.inodes} inodes, md5 {result.digest}, {seconds:.1f} s"
    )


@contextmanager
def _shown() -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal; elsewhere a line now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (
        bars.TextColumn("replaying"),
        bars.BarColumn(),
        bars.DownloadColumn(),
        bars.TextColumn("transaction {task.fields[txid]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("replay", total=None, txid=0)
        yield lambda at: bar.update(
            task, completed=at.done_bytes, total=at.total_bytes, txid=at.txid
        )


def _lines() -> Callable[[Progress], None]:
    told = time.monotonic()

    def tell(at: Progress) -> None:
        nonlocal told
        if time.monotonic() - told >= _SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            share = 100 * at.done_bytes // max(at.total_bytes, 1)
            click.echo(f"checkpoint: {share} %, transaction {at.txid}", err=True)

    return tell
