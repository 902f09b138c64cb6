"""What a person sees in a narrow window, and what Ctrl-C does to any command."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from ha.cli.explain.history import Listing
from ha.notices.model import HistoryEntry
from tests.ha.cli.stand_ins import Cluster
from tests.ha.notices.test_model import RECORD
from tests.stand_in import say_nothing, stand_in

CAUSE = "asked for by ann from ops1: the rack gets a new switch, and then the kernel is updated"


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_cause_of_a_failover_can_be_read_at_every_width(width: int) -> None:
    now = datetime.now(UTC)
    entries = (HistoryEntry(12, replace(RECORD, at=now, cause=CAUSE)), HistoryEntry(11, None, "?"))
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(Listing(entries, now))
    told = captured.get()
    assert all(len(line) <= width for line in told.splitlines())
    assert "…" not in told
    assert all(word in told for word in CAUSE.split())
    assert max(len(line.split()) for line in told.splitlines()) > 3, "not one word on each line"


@pytest.mark.parametrize(
    "words", [("status",), ("explain",), ("doctor",), ("haadmin", "-getServiceState", "nn1")]
)
async def test_an_interrupt_is_one_line_and_130(
    cluster: Cluster, tmp_path: Path, words: tuple[str, ...]
) -> None:
    # A shell that runs the tests in the background has us ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await say_nothing(reader, writer)

    command, *rest = words
    async with stand_in(silent) as port:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ha.cli.main", command, "--conf-dir", str(tmp_path),
            "--timeout", "60",
            "-D", f"dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:{port}", *rest,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(60):
                await asked.wait()
                process.send_signal(signal.SIGINT)
                _, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 130, err.decode()
    assert err.decode().split() == ["interrupted"]
