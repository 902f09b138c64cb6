"""``--bootstrap-standby``: make this NameNode a standby of one that runs.

Whatever was in the name directories stays until the new image is there and has been checked.

See docs/reference/namenode.md#bootstrapstandby.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.keys import namenode as keys_namenode
from ha.conf.topology import NameNodeAddress
from ha.daemon.process import ExitWith
from ha.record import dataclass
from ha.rpc.errors import RemoteFault, RpcError
from hadoop.durable import sync_folder, write_durably
from journal.errors import JournalError
from journal.model import NamespaceInfo, TxId
from journal.reader.reader import JournalReader
from namenode_sim.image.reader import load_image
from namenode_sim.startup.identity import NameNodeIdentity, journal_reader, name_directories
from namenode_sim.startup.questions import Consent
from namenode_sim.storage.fill import COMMENT, copy_image
from namenode_sim.storage.format import erase, find_occupied, lock_all
from namenode_sim.storage.storage import NEWEST_LAYOUT, OLDEST_LAYOUT
from namenode_sim.storage.version_file import version_text
from namenode_sim.transfer.image_fetch import FetchFailed, fetch_image
from namenode_sim.transfer.namenode_protocol import Facts, ask_facts

log = structlog.get_logger()

# Hadoop's exit codes (BootstrapStandby), and one of ours for what Hadoop throws at its caller.
CANNOT_CONNECT: Final = 2
WRONG_VERSION: Final = 3
FETCH_FAILED: Final = 4
ALREADY_FORMATTED: Final = 5
EDITS_UNAVAILABLE: Final = 6

ASK_SECONDS: Final = 10.0
_NEW: Final = "current.bootstrap"


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """From whom, and which image."""

    source: NameNodeAddress
    namespace: NamespaceInfo
    image_txid: TxId
    last_txid: TxId


async def bootstrap_standby(
    conf: Configuration,
    place: NameNodeIdentity,
    consent: Consent,
    *,
    check_shared_edits: bool = True,
) -> Bootstrapped:
    """Copy ids and newest image from the first other NameNode that answers.

    Raises:
        ExitWith: with Hadoop's codes 2, 3, 5 and 6, and 4 when the image could not be fetched;
            the name directories are then unchanged.
        StorageError: if another process uses a name directory.
    """
    source, facts = await _ask_peers(place)
    _check_version(source, facts)
    directories = name_directories(conf, place.address)
    with lock_all(directories):
        if full := find_occupied(directories):
            shown = ", ".join(map(str, full))
            consent.require(
                f"Re-format filesystem in {shown} ? (Y or N)",
                code=ALREADY_FORMATTED,
                refusal=f"{shown} holds a file system already, and nothing was changed. To "
                "replace it by a copy of the other NameNode's, give --force.",
            )
        if check_shared_edits:
            await _check_edits(conf, place, facts)
        try:
            await _fetch_into(conf, directories, source, facts)
        except FetchFailed as failure:
            raise ExitWith(
                FETCH_FAILED,
                f"the image of transaction {facts.image_txid} could not be fetched: {failure}. The "
                "name directories are unchanged; run the same command again.",
            ) from failure
        finally:
            for directory in directories:
                shutil.rmtree(directory / _NEW, ignore_errors=True)
    return Bootstrapped(source, facts.namespace, facts.image_txid, facts.last_txid)


async def _ask_peers(place: NameNodeIdentity) -> tuple[NameNodeAddress, Facts]:
    if not place.peers:
        raise ExitWith(
            CANNOT_CONNECT,
            f"dfs.ha.namenodes.{place.address.nameservice} names no other NameNode to copy from.",
        )
    failures = []
    for peer in place.peers:
        try:
            facts = await ask_facts(peer.rpc, deadline_seconds=ASK_SECONDS)
        except (RpcError, RemoteFault) as failure:
            failures.append(f"{peer.namenode} at {peer.rpc}: {failure}")
            continue
        log.info(
            "bootstrap.source",
            namenode=peer.namenode,
            image_txid=facts.image_txid,
            last_txid=facts.last_txid,
        )
        return peer, facts
    raise ExitWith(
        CANNOT_CONNECT,
        "no other NameNode answers; nothing was changed. Start one first. " + "; ".join(failures),
    )


def _check_version(source: NameNodeAddress, facts: Facts) -> None:
    layout = facts.namespace.layout_version
    if not NEWEST_LAYOUT <= layout <= OLDEST_LAYOUT:
        raise ExitWith(
            WRONG_VERSION,
            f"{source.namenode} has layout version {layout}, and we know {OLDEST_LAYOUT} to "
            f"{NEWEST_LAYOUT}; nothing was changed. Use the software that it runs.",
        )
    if not facts.upgrade_finalized:
        raise ExitWith(
            WRONG_VERSION,
            f"{source.namenode} is in an upgrade that is not finalized, whose way back we could "
            "not copy; nothing was changed. Finalize the upgrade or roll it back first.",
        )


async def _check_edits(conf: Configuration, place: NameNodeIdentity, facts: Facts) -> None:
    """Check that the journal has every edit from the image to the source's newest (5.4, 5)."""
    reader: JournalReader = journal_reader(conf, place, facts.namespace)
    first, last = TxId(facts.image_txid + 1), facts.last_txid
    try:
        await reader.ensure_served(first, last)
    except JournalError as failure:
        raise ExitWith(
            EDITS_UNAVAILABLE,
            f"the journal {place.journal.journal_id} does not serve the edits {first} to {last} "
            f"that the image lacks: {failure}. Nothing was changed. Save the namespace of the "
            "other NameNode, or start the JournalNodes that have them; "
            "--skip-shared-edits-check goes on without.",
        ) from failure
    finally:
        await reader.close()


async def _fetch_into(
    conf: Configuration,
    directories: Sequence[Path],
    source: NameNodeAddress,
    facts: Facts,
) -> None:
    """Build a whole ``current`` next to the old one in each directory, then put it in place."""
    folders = [directory / _NEW for directory in directories]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
    image = await fetch_image(
        source.http,
        folders[0],
        facts.image_txid,
        facts.namespace,
        stall_seconds=conf.get(keys_namenode.IMAGE_TRANSFER_TIMEOUT),
    )
    load_image(image)  # an image that we cannot load must not replace anything
    for folder in folders:
        if folder != folders[0]:
            copy_image([image], folder)
        write_durably(folder / "seen_txid", b"%d\n" % facts.image_txid)
        write_durably(folder / "VERSION", version_text(facts.namespace, comment=COMMENT))
    for directory, folder in zip(directories, folders, strict=True):
        erase(directory / "current")
        folder.rename(directory / "current")
        sync_folder(directory)
        log.info("bootstrap.installed", path=str(directory), image_txid=facts.image_txid)
