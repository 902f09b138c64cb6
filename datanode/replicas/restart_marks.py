"""Lets an upgraded DataNode go on with the replicas that its predecessor was writing.

The file ``.blk_<id>.restart`` is Hadoop's, which writes only the time; after it stands how much was
acknowledged.  See docs/reference/datanode.md#restarts-for-an-upgrade.
"""

import contextlib
import time
from pathlib import Path
from typing import Final

import structlog

from datanode import model
from datanode.replicas import replica_files
from hadoop.wire.errors import DataNodeError

log = structlog.get_logger()

VALID_SECONDS: Final = 50.0
"""dfs.datanode.restart.replica.expiration; a client waits for 30 s."""


def _mark(paths: replica_files.ReplicaPaths) -> Path:
    return paths.block.with_name(f".{paths.block.name}.restart")


def leave_mark(paths: replica_files.ReplicaPaths, replica: model.BeingWritten) -> None:
    """Mark a replica that no task writes any more; raises ``OSError``."""
    until = int((time.time() + VALID_SECONDS) * 1000)
    _mark(paths).write_text(f"{until} {replica.acked}")


def take_mark(
    paths: replica_files.ReplicaPaths, found: model.WaitingForRecovery
) -> model.BeingWritten | model.WaitingForRecovery:
    """Return a replica as it was if its mark is valid, cut to what is acknowledged; drop the mark.

    Without the cut, readers would be given bytes that no other DataNode needs to have.
    """
    try:
        until, acked = map(int, _mark(paths).read_text().split())
        if found.readable and acked <= found.length and time.time() * 1000 <= until:
            with replica_files.opened(paths, writable=True) as files:
                files.cut(acked, str(found.block))
            return model.BeingWritten(found.block, found.storage, acked, acked=acked)
    except (DataNodeError, OSError, ValueError) as problem:  # most have none, Hadoop's one number
        log.debug("datanode.not_resumed", block=str(found.block), why=str(problem))
    finally:
        with contextlib.suppress(OSError):
            _mark(paths).unlink(missing_ok=True)
    return found
