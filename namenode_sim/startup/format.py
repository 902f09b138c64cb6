"""``nnha namenode --format``: a new, empty file system in the name directories and the journal."""

import random
import socket
import time
import uuid

import structlog

from ha.conf.configuration import Configuration
from ha.conf.own_user import own_user
from ha.daemon.process import ExitWith
from ha.daemon.stderr import say
from ha.names import NAMES
from hadoop.errors import StorageError
from journal.errors import JournalError, NotFormatted
from journal.links.quorum_call import ask_once
from journal.links.remote_node import JournalAddress
from journal.model import JournalId, NamespaceInfo
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup.beside_active import ASK_SECONDS, refuse_active
from namenode_sim.startup.identity import (
    NameNodeIdentity,
    edits_directories,
    journal_writer,
    name_directories,
)
from namenode_sim.storage.format import erase_edits, format_locked, lock_all, refuse_occupied

log = structlog.get_logger()

ABORTED = 1
"""Hadoop's exit code of a format that was not carried out."""


def new_namespace_info(cluster_id: str | None, *, layout_version: int) -> NamespaceInfo:
    """Draw the ids of a new file system, as Hadoop draws them.

    ``layout_version`` must be one that the Hadoop in the same cluster starts from: it refuses an
    older one without an upgrade, and a newer one altogether.  Edits are written at a layout that
    all read.

    See docs/reference/namenode.md#name-directories.
    """
    draw = random.SystemRandom()
    drawn = draw.randrange(1, 2**31)
    return NamespaceInfo(
        layout_version=layout_version,
        namespace_id=draw.randrange(1, 2**31),
        cluster_id=cluster_id or f"CID-{uuid.uuid4()}",
        ctime=0,
        block_pool_id=f"BP-{drawn}-{_own_address()}-{time.time_ns() // 1_000_000}",
    )


async def format_all(
    conf: Configuration, place: NameNodeIdentity, namespace_info: NamespaceInfo, *, force: bool
) -> None:
    """Format every JournalNode, then every name directory; no edits of what was there stay.

    The journal comes first: a name directory with a VERSION says that a file system is complete.
    The name directories are locked before, as the lock shows whether a NameNode runs on them: it
    must not find its journal erased, whatever was forced.

    Raises:
        ExitWith: 1 when another NameNode is active, or a JournalNode refuses or does not answer;
            no name directory is touched.
        NotEmpty, InUse: when a name directory may not be formatted; nothing is changed.
        StorageError: when a name directory cannot be formatted.
    """
    directories = name_directories(conf, place.address)
    with lock_all(directories):
        if not force:
            refuse_occupied(edits_directories(conf, place.address))
        await refuse_active(
            place,
            code=ABORTED,
            because="and formatting would erase the file system that it serves; nothing was "
            "changed, and --force does not override this. Stop all NameNodes first. To become its "
            "standby instead: nnha namenode --bootstrap-standby.",
            erases=force and await journal_exists(place),
        )
        await _format_journal(conf, place, namespace_info, force=force)
        try:
            erase_edits(edits_directories(conf, place.address), directories)
            format_locked(directories, namespace_info, Namespace.empty(own_user()))
        except StorageError as problem:
            raise ExitWith(
                ABORTED,
                f"the journal is formatted, but {str(problem).rstrip('.')}. Repair that, and "
                "format again with --force: nothing has been written to the new journal yet.",
            ) from problem
    log.info(
        "namenode.formatted",
        cluster_id=namespace_info.cluster_id,
        namespace_id=namespace_info.namespace_id,
        block_pool_id=namespace_info.block_pool_id,
    )


async def journal_exists(place: NameNodeIdentity) -> bool:
    """Return whether a JournalNode holds the journal, or does not say that it does not."""
    journal = JournalAddress(JournalId(place.journal.journal_id), place.address.nameservice)
    answers = await ask_once(
        place.journal_nodes, journal, lambda remote: remote.status(ASK_SECONDS)
    )
    return not all(isinstance(answer, NotFormatted) for answer in answers.values())


async def _format_journal(
    conf: Configuration, place: NameNodeIdentity, namespace_info: NamespaceInfo, *, force: bool
) -> None:
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


def _own_address() -> str:
    """Return this host's address for the id of a block pool; Hadoop's stand-in if it has none.

    Hadoop's DataNodes read only addresses of IPv4 there.
    """
    why = "it has none of IPv4"
    try:
        for family, _, _, _, address in NAMES.addresses(socket.gethostname(), 0, ASK_SECONDS):
            if family == socket.AF_INET:
                return str(address[0])
    except OSError as failure:
        why = str(failure)
    say(
        f"nnha namenode: no address of this host for the id of the block pool: {why}. The id has "
        "127.0.0.1 in its place, which changes nothing else."
    )
    return "127.0.0.1"
