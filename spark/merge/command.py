"""``nnha checkpoint merge``: make a newer image from an image and its edits."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from ha.conf.errors import ConfigurationError
from ha.console.exit_codes import FAILED, INTERRUPTED, REFUSED
from ha.daemon.logs import configure_logging
from ha.daemon.private_files import private_files
from hadoop.errors import StorageError
from hadoop.location import path_of
from namenode_sim.checkpoint.publication import MergeRefused
from namenode_sim.edits.errors import EditsError
from namenode_sim.image.errors import ImageError
from spark.ends.hadoop_files import HadoopFileError
from spark.ends.options import Ends, end_options, open_sink, open_source
from spark.ends.sinks.model import Published, SinkFailed, SinkRefused
from spark.ends.sources.model import SourceError
from spark.engine.model import SparkUnavailable
from spark.merge.errors import MergeFailed
from spark.merge.merger import DEFAULT_MASTER, EngineName, Merger, MergeReport
from spark.merge.progress_display import shown
from spark.merge.stages import Tell

REFUSALS: Final = (MergeRefused, SinkRefused, StorageError)
FAILURES: Final = (
    EditsError,
    ImageError,
    MergeFailed,
    SourceError,
    SinkFailed,
    HadoopFileError,
    SparkUnavailable,
    OSError,
)


@click.command("merge")
@end_options
@click.option(
    "--engine",
    type=click.Choice([str(name) for name in EngineName]),
    default=str(EngineName.AUTO),
    show_default=True,
    help="local: one process that holds the whole namespace; spark: divided, on Spark; pool: "
    "divided among processes of this machine, without Java; auto: local or spark by the image's "
    "size.",
)
@click.option(
    "--master",
    default=DEFAULT_MASTER,
    show_default=True,
    metavar="URL",
    help="Spark's master, as for spark-submit: local[4], spark://host:7077, yarn.",
)
@click.option(
    "--conf",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of Spark, as for spark-submit.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for work directories, about twice the image's size; Spark's executors must "
    "see it under the same path.  Default: --out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--end-with-stdin", is_flag=True, hidden=True)
def merge_command(
    *,
    engine: str,
    master: str,
    properties: tuple[str, ...],
    work: Path | None,
    as_json: bool,
    end_with_stdin: bool,
    **ends: Any,  # noqa: ANN401 - the options of end_options
) -> None:
    """Apply edits to an image and publish the result as a newer image.

    A second run with the same input finds its image and changes nothing.

    Exit codes: 0 the image is complete, 2 wrong usage, 3 another image of that transaction exists
    and nothing was changed, 4 some input is damaged or missing and nothing was published, 130
    interrupted by Ctrl-C.
    """
    configure_logging("checkpoint", level="warning")
    if end_with_stdin:
        exit_when_stdin_closes()
    began = time.monotonic()
    wanted = Ends(**ends)
    room = _room(wanted, work)
    merger = Merger(room, asked=EngineName(engine), master=master, properties=_pairs(properties))
    try:
        with private_files(), merger, shown() as tell:
            report, published = run_merge(merger, wanted, room, tell)
    except ConfigurationError as problem:
        raise click.UsageError(str(problem)) from problem
    except REFUSALS as refusal:
        _end(REFUSED, str(refusal))
    except KeyboardInterrupt:
        _end(INTERRUPTED, "interrupted: its image is there completely, or not at all")
    except FAILURES as failure:
        _end(FAILED, f"{str(failure).rstrip('.')}. Nothing was published.")
    _print(report, published, time.monotonic() - began, as_json=as_json)


def run_merge(merger: Merger, ends: Ends, work: Path, tell: Tell) -> tuple[MergeReport, Published]:
    """Fetch, merge, publish; raises what is in REFUSALS and FAILURES, and ConfigurationError."""
    source, sink = open_source(ends, merger.hadoop), open_sink(ends, merger.hadoop)
    staged = source.stage(work, _said)
    report = merger.merge(
        staged.image, staged.edits, sink.folder(work), tell, digest_checked=staged.digest_checked
    )
    published = sink.publish(report.merged.image, staged, _said)
    return report, published


def _said(words: str) -> None:
    click.echo(f"checkpoint: {words}", err=True)


def _room(ends: Ends, work: Path | None) -> Path:
    """Return where to work; where none is named, the local directory of the result."""
    if work is None:
        if ends.out is None or ends.need_java or ends.from_cluster:
            raise click.UsageError(
                "give --work DIR, a local directory for temporary files: an input or the output "
                "is not local"
            )
        work = path_of(ends.out)
    if ends.image is not None and not ends.need_java and not path_of(ends.image).exists():
        raise click.UsageError(f"--image {ends.image} does not exist")
    return work.absolute()


def _pairs(properties: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--conf takes KEY=VALUE; there is no = in {text!r}")
        pairs[name] = value
    return pairs


def _end(code: int, message: str) -> NoReturn:
    click.echo(f"checkpoint: {message}", err=True)
    sys.exit(code)


def as_facts(report: MergeReport, published: Published, seconds: float) -> dict[str, object]:
    merged, start = report.merged, report.spark_start_seconds
    return {
        "image": str(merged.image),
        "where": published.where,
        "engine": str(report.choice.engine),
        "reason": report.choice.reason,
        "from_txid": merged.from_txid,
        "to_txid": merged.to_txid,
        "segments": merged.segments,
        "inodes": merged.inodes,
        "md5": merged.digest,
        "already_there": merged.already_there,
        "seconds": round(seconds, 3),
        "spark_start_seconds": None if start is None else round(start, 3),
        "stages": {name: round(took, 3) for name, took in report.seconds.items()},
    }


def _print(report: MergeReport, published: Published, seconds: float, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(as_facts(report, published, seconds)))
        return
    merged, start = report.merged, report.spark_start_seconds
    edits = merged.to_txid - merged.from_txid
    what = "was there already, the same" if merged.already_there else "saved"
    click.echo(
        f"checkpoint: {published.where} {what}: {edits} edits of {merged.segments} segments, "
        f"{merged.inodes} inodes, md5 {merged.digest}, {seconds:.1f} s"
    )
    click.echo(f"engine {report.choice.engine}: {report.choice.reason}")
    if report.seconds:
        parts = [f"{name} {took:.1f} s" for name, took in report.seconds.items()]
        if start is not None:
            parts.insert(0, f"start of Spark {start:.1f} s")
        click.echo(f"stages: {', '.join(parts)}")


_STDIN: Final = 0


def exit_when_stdin_closes() -> None:
    """Kill this process once no process holds the other end of standard input any more.

    Where it leads a process group, a JVM and Python workers go with it.  What lies in the work
    directory the next merge removes.
    """
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    while os.read(_STDIN, 4096):
        pass  # what comes in means nothing
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
