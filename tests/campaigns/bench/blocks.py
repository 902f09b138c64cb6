"""Blocks: the memory of the map, the time to load it, full reports, and bytes through DataNodes.

The map is measured in a process of its own, so that its memory is the map's.  The bytes are
measured beside Hadoop's DataNodes, where NNHA_INTEROP=1 is set.
"""

import json
import os
import subprocess
import sys

import click

from tests.campaigns.bench.blocks_map import REPORT_ROWS, Figures
from tests.campaigns.bench.blocks_transfer import transfer_rows
from tests.campaigns.bench.report import Row, publish

BLOCKS = 2_000_000


def measured(blocks: int) -> Figures:
    """The figures of a map of so many blocks."""
    command = [sys.executable, "-m", "tests.campaigns.bench.blocks_map", str(blocks)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Figures(**json.loads(output))


def rows(found: Figures) -> list[Row]:
    """Each figure and its bar."""
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


@click.command()
@click.option("--blocks", default=BLOCKS, show_default=True, help="How many blocks the map has.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(blocks: int, *, as_json: bool) -> None:
    """Measure the map of blocks and, with NNHA_INTEROP=1, DataNodes beside Hadoop's."""
    found = rows(measured(blocks))
    if os.environ.get("NNHA_INTEROP") == "1":
        found += transfer_rows()
    raise SystemExit(publish("blocks", found, as_json=as_json))
