"""``nnha namespace``: a namespace as tables, without a NameNode."""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import click

from ha.console.exit_codes import FAILED, REFUSED
from ha.daemon.logs import configure_logging
from namenode_sim.image.errors import ImageError
from spark.engine.model import TaskFailed
from spark.tables.engines import EngineUnavailable, local_engine, spark_engine
from spark.tables.export import Exported, ExportProgress, export
from spark.tables.export_output import ExportRefused, refuse_in_the_way


@click.group()
def namespace() -> None:
    """Tables and reports of a namespace."""


@namespace.command("export")
@click.argument("image", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--parquet",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder to write; it appears when all of it is there.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "local", "spark"]),
    default="auto",
    show_default=True,
    help="local: processes of this machine; auto: spark if --master is given.",
)
@click.option("--master", help="Spark's master, such as spark://host:port; default local[*].")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A property of Spark.")
@click.option(
    "--overwrite", is_flag=True, help="Replace an older export of that name, and nothing else."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def export_command(
    *,
    image: Path,
    out: Path,
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write the current tree of IMAGE as Parquet files.

    OUT/inodes has a row for each inode, OUT/directories one for each directory with its path and
    the sums over all below it, OUT/export.json says which image it is.

    Exit codes: 0 written, 2 wrong usage, 3 OUT is there already or another export writes there,
    4 the image is damaged or something cannot be written; in the last two nothing was changed.
    """
    configure_logging("namespace", level="warning")
    began = time.monotonic()
    at = datetime.now(UTC).isoformat(timespec="seconds")
    if engine == "local" and (master or conf):
        raise click.UsageError("--master and --conf are Spark's; they need --engine spark.")
    on_spark = engine == "spark" or bool(master or conf)
    try:
        refuse_in_the_way(out, overwrite=overwrite)
        starting = spark_engine(master or "local[*]", _pairs(conf)) if on_spark else None
        with starting or local_engine(image) as running:
            result = export(image, out, running, at=at, overwrite=overwrite, tell=_tell)
    except ExportRefused as refusal:
        _end(REFUSED, str(refusal))
    except (ImageError, EngineUnavailable, TaskFailed, OSError) as failure:
        _end(FAILED, f"{str(failure).rstrip('.')}. Nothing was written.")
    _report(result, time.monotonic() - began, as_json=as_json)


def _pairs(conf: tuple[str, ...]) -> dict[str, str]:
    odd = [text for text in conf if "=" not in text]
    if odd:
        raise click.UsageError(f"--conf {odd[0]}: expected KEY=VALUE.")
    pairs = (text.partition("=") for text in conf)
    return {key.strip(): value for key, _, value in pairs}


def _end(code: int, message: str) -> NoReturn:
    click.echo(f"namespace: {message}", err=True)
    sys.exit(code)


def _tell(progress: ExportProgress) -> None:
    if progress.total > 1:
        click.echo(f"namespace: {progress.stage}: {progress.done} of {progress.total}", err=True)


def _report(result: Exported, seconds: float, *, as_json: bool) -> None:
    facts = {
        "out": str(result.out),
        "txid": result.txid,
        "inodes": result.inodes,
        "directories": result.directories,
        "not_in_tree": result.not_in_tree,
        "seconds": round(seconds, 3),
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    left = f", {result.not_in_tree} only in snapshots left out" if result.not_in_tree else ""
    click.echo(
        f"namespace: {result.out}: {result.inodes} inodes, {result.directories} directories of "
        f"transaction {result.txid}{left}, {seconds:.1f} s"
    )
