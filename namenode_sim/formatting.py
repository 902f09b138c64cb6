"""``nnha namenode --format``: a new, empty file system in the name directories and the journal."""

import random
import socket
import time
import uuid

import structlog

from ha.conf.configuration import Configuration
from ha.conf.person import own_user
from ha.daemon.process import ExitWith
from journal.errors import JournalError
from journal.model import NamespaceInfo
from namenode_sim.namespace import Namespace
from namenode_sim.place import Place, journal_writer, name_directories
from namenode_sim.storage_format import format_name_dirs

log = structlog.get_logger()

ABORTED = 1
"""Hadoop's exit code of a format that was not carried out."""


def new_namespace_info(cluster_id: str | None, *, layout_version: int) -> NamespaceInfo:
    """The ids of a new file system, drawn as Hadoop draws them (hadoop-formats 5.1).

    ``layout_version`` must be one that the Hadoop beside us starts from: it refuses an older one
    without an upgrade, and a newer one altogether.  Edits are written at a layout that all read.
    """
    draw = random.SystemRandom()
    address = socket.gethostbyname(socket.gethostname()) if _has_address() else "127.0.0.1"
    return NamespaceInfo(
        layout_version=layout_version,
        namespace_id=draw.randrange(1, 2**31),
        cluster_id=cluster_id or f"CID-{uuid.uuid4()}",
        ctime=0,
        block_pool_id=f"BP-{draw.randrange(1, 2**31)}-{address}-{time.time_ns() // 1_000_000}",
    )


async def format_all(
    conf: Configuration, place: Place, namespace_info: NamespaceInfo, *, force: bool
) -> None:
    """Format every JournalNode, then every name directory.

    The journal comes first: a name directory with a VERSION says that a file system is complete.

    Raises:
        ExitWith: 1 when a JournalNode refuses or does not answer; no name directory is touched.
        StorageError: when a name directory cannot be formatted.
    """
    writer = journal_writer(conf, place, namespace_info)
    try:
        await writer.format(force=force)
    except JournalError as failure:
        raise ExitWith(
            ABORTED,
            f"formatting stopped at the journal {place.journal.journal_id}: {failure}. No name "
            "directory was changed. All JournalNodes must be up, and empty unless --force is "
            "given; then run the same command again.",
        ) from failure
    finally:
        await writer.close()
    format_name_dirs(
        name_directories(conf, place.address),
        namespace_info,
        Namespace.empty(own_user()),
        force=force,
    )
    log.info(
        "namenode.formatted",
        cluster_id=namespace_info.cluster_id,
        namespace_id=namespace_info.namespace_id,
        block_pool_id=namespace_info.block_pool_id,
    )


def _has_address() -> bool:
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        return False
    return True
