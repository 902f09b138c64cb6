"""What a NameNode reports to systemd: when it is ready, and that its own duties are done."""

import asyncio
import contextlib
from typing import Final

from ha.daemon.notify import SERVICE
from namenode_sim.term.namenode import NameNode

SILENT_SECONDS: Final = 60.0
"""Far longer than any wait for an answer of the journal: a duty that is silent for longer hangs."""
READY_WITHOUT_JOURNAL_SECONDS: Final = 10.0
"""How long systemd holds back what follows us if the journal cannot be followed."""
LOOK_SECONDS: Final = 0.05


def overdue(namenode: NameNode) -> str:
    """Return which duty has not moved for SILENT_SECONDS; empty where all is well.

    A standby follows the journal, an active writes it.  Failures count as done: they are reported
    elsewhere, and to start again mends none of them.
    """
    following = namenode.tailer.silent_seconds
    if following > SILENT_SECONDS:
        return f"following the journal has not moved for {following:.0f} s"
    edit_log = namenode.edit_log
    writing = 0.0 if edit_log is None else edit_log.silent_seconds
    if writing > SILENT_SECONDS:
        return f"a batch of edits has had no end for {writing:.0f} s"
    return ""


async def notify_when_ready(namenode: NameNode) -> None:
    """Report to systemd when this NameNode could take over.

    Blocks are not waited for: DataNodes may come later.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_WITHOUT_JOURNAL_SECONDS):
            while namenode.tailer.trouble or namenode.lacking():  # noqa: ASYNC110 - two owners
                await asyncio.sleep(LOOK_SECONDS)
    SERVICE.ready()
