"""Blocks: the map of them, bytes through DataNodes, reports and files at NameNodes, failovers.

The map is measured in a process of its own, so that its memory is the map's.  All else is
measured next to Hadoop's own daemons, where NNHA_INTEROP=1 is set.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import click

from deploy.local.cluster.errors import LocalClusterError
from tests.campaigns.bench import blocks_failover, blocks_namenodes, blocks_transfer
from tests.campaigns.bench.blocks_map import REPORT_ROWS, Figures
from tests.campaigns.bench.report import Row, publish
from tests.interop.hadoop_jars import JarsMissing

BLOCKS = 2_000_000


def measured(blocks: int) -> Figures:
    command = [sys.executable, "-m", "tests.campaigns.bench.blocks_map", str(blocks)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Figures(**json.loads(output))


def rows(found: Figures) -> list[Row]:
    memory = found.bytes_per_block
    load = found.load_seconds / found.blocks * 1e6
    first, same = found.first_report_seconds * 1000, found.same_report_seconds * 1000
    decode = found.decode_seconds * 1000
    rate = found.increments_per_second
    of_blocks = f"map of {found.blocks:,} blocks x 3 on 9 storages"
    report = f"CPU of the loop, {REPORT_ROWS:,} rows"
    return [
        Row("memory of a block x 3", memory, "bytes", "<= 80", memory <= 80, of_blocks),
        Row("load pass, a block", load, "us", "<= 1", load <= 1,
            f"{found.load_seconds:.2f} s for all, from a loaded namespace"),
        Row("full report, first", first, "ms", "<= 40", first <= 40, report),
        Row("full report, unchanged", same, "ms", "<= 40", same <= 40, report),
        Row("full report, decoding", decode, "ms", "-", None,
            f"CPU of a thread, {REPORT_ROWS:,} rows"),
        Row("incremental reports", rate, "replicas/s", ">= 20,000", rate >= 20_000,
            "CPU of the loop, 100 a call"),
    ]  # fmt: skip


SCENES = ("map", "transfer", "namenodes", "failover")
_PEER_SCENES = {
    "transfer": blocks_transfer.unmeasured_rows,
    "namenodes": blocks_namenodes.unmeasured_rows,
    "failover": blocks_failover.unmeasured_rows,
}


@click.command()
@click.option("--only", multiple=True, type=click.Choice(SCENES), help="Not all scenes.")
@click.option("--blocks", default=BLOCKS, show_default=True, help="How many blocks the map has.")
@click.option(
    "--image-blocks", default=blocks_namenodes.IMAGE_BLOCKS, show_default=True,
    help="How many blocks DataNodes report to the NameNodes.",
)  # fmt: skip
@click.option(
    "--rounds", default=blocks_failover.KILLS, show_default=True,
    help="Kills, and turns of writing files; reports are sent three times as often.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(
    *, only: tuple[str, ...], blocks: int, image_blocks: int, rounds: int, as_json: bool
) -> None:
    """Measure the map of blocks and, with NNHA_INTEROP=1, daemons next to Hadoop's."""
    scenes: dict[str, Callable[[], list[Row]]] = {
        "map": lambda: rows(measured(blocks)),
        "transfer": blocks_transfer.transfer_rows,
        "namenodes": lambda: blocks_namenodes.namenode_rows(image_blocks, rounds),
        "failover": lambda: blocks_failover.failover_rows(rounds),
    }
    found = [row for name in only or SCENES for row in _played(name, scenes[name])]
    raise SystemExit(publish("blocks", found, as_json=as_json))


def _played(name: str, scene: Callable[[], list[Row]]) -> list[Row]:
    """Play a scene; one that breaks off says so, and the others have their rows all the same."""
    unmeasured = _PEER_SCENES.get(name)
    if unmeasured is not None and os.environ.get("NNHA_INTEROP") != "1":
        return unmeasured("Hadoop's daemons are not asked for by NNHA_INTEROP=1")
    try:
        return scene()
    except JarsMissing as missing:
        return [] if unmeasured is None else unmeasured(_first_line(missing))
    except LocalClusterError as failure:
        why = f"broke off: {_first_line(failure)}"
        return [Row(f"scene {name}", None, "-", "played to its end", False, why)]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
