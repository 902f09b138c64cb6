"""What ``nnha namenode`` can do instead of serving, as one table.

See docs/reference/namenode.md#start-modes.
"""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ha.conf.configuration import Configuration
from ha.conf.keys.cluster import FORMAT_LAYOUT
from ha.conf.keys.namenode import ALLOW_FORMAT, REFORMAT_DISABLED
from ha.console.exit_codes import UNEXPECTED
from ha.daemon import event_loop
from ha.daemon.process import ExitWith
from ha.record import dataclass
from hadoop.errors import StorageError
from journal.model import LAYOUT_VERSION
from namenode_sim.startup import identity
from namenode_sim.startup.bootstrap import bootstrap_standby
from namenode_sim.startup.format import ABORTED, format_all, new_namespace_info
from namenode_sim.startup.prepare.carry_out import Permission, prepare
from namenode_sim.startup.questions import Choose, Consent
from namenode_sim.startup.recover import Recovery, recover
from namenode_sim.startup.shared_edits import initialize_shared_edits
from namenode_sim.storage.format import find_occupied
from namenode_sim.storage.storage import open_name_dirs


@dataclass(frozen=True, slots=True)
class Request:
    """One run: what is configured, and what the command line says in addition to the mode."""

    conf: Configuration
    place: identity.NameNodeIdentity
    consent: Consent
    choose: Choose
    cluster_id: str | None
    check_shared_edits: bool
    may_found: bool = False
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Mode:
    """One start-up option: how it is spelled, and what it does.

    ``run`` gives the text to print; errors are ExitWith, StorageError, ImageError and EditsError.
    """

    name: str
    spellings: tuple[str, ...]
    summary: str
    run: Callable[[Request], str]


def format_file_system(request: Request) -> str:
    conf, place, consent = request.conf, request.place, request.consent
    if not conf.get(ALLOW_FORMAT):
        raise ExitWith(ABORTED, f"{ALLOW_FORMAT.name} is false; nothing was changed.")
    full = _find_occupied(request)
    shown = ", ".join(map(str, full))
    never_again = conf.get(REFORMAT_DISABLED)
    if full and never_again:
        raise ExitWith(
            ABORTED,
            f"{REFORMAT_DISABLED.name} is true and {shown} holds a file system; nothing was "
            "changed.",
        )
    if full:
        consent.require(
            f"Re-format filesystem in {shown} ? (Y or N)",
            code=ABORTED,
            refusal=f"format aborted: {shown} holds a file system, and nothing was changed. To "
            "erase it for good, give --force.",
        )
    info = new_namespace_info(request.cluster_id, layout_version=conf.get(FORMAT_LAYOUT))
    try:
        event_loop.run(format_all(conf, place, info, force=bool(full) or consent.force))
    except StorageError as problem:
        raise ExitWith(ABORTED, f"{problem} Nothing was changed.") from problem
    return (
        f"formatted {place.address.nameservice}: cluster {info.cluster_id}, "
        f"block pool {info.block_pool_id}"
    )


def _find_occupied(request: Request) -> list[Path]:
    directories = identity.edits_directories(request.conf, request.place.address)
    try:
        return find_occupied(directories)
    except OSError as problem:
        raise ExitWith(ABORTED, f"{problem}; nothing was changed.") from problem


def initialize(request: Request) -> str:
    """Move a single NameNode's edits into the quorum journal."""
    done = event_loop.run(initialize_shared_edits(request.conf, request.place, request.consent))
    journal = request.place.journal.journal_id
    if not done.segments:
        return (
            f"the journal {journal} is formatted; the image of transaction {done.image_txid} "
            "holds everything, so there were no edits to copy"
        )
    return (
        f"the journal {journal} holds the edits {done.segments[0].first} to {done.last_txid} in "
        f"{len(done.segments)} segments; the image is of transaction {done.image_txid}"
    )


def bootstrap(request: Request) -> str:
    done = event_loop.run(
        bootstrap_standby(
            request.conf,
            request.place,
            request.consent,
            check_shared_edits=request.check_shared_edits,
        )
    )
    return (
        f"copied the image of transaction {done.image_txid} from {done.source.namenode} at "
        f"{done.source.http}; the journal has what follows"
        if request.check_shared_edits
        else f"copied the image of transaction {done.image_txid} from {done.source.namenode} at "
        f"{done.source.http}; whether the journal has what follows was not checked"
    )


def prepare_directories(request: Request) -> str:
    """Have an image here: the one that is there, a peer's, or a new file system's."""
    allowed = Permission(request.may_found, request.wait_seconds, request.cluster_id)
    return event_loop.run(prepare(request.conf, request.place, allowed))


def recover_namespace(request: Request) -> str:
    """Load what damaged edits still hold, and save it."""
    consent = request.consent
    consent.require(
        "You have selected Metadata Recovery mode. This mode is intended to recover lost metadata "
        "on a corrupt filesystem. Metadata recovery mode often permanently deletes data from your "
        "HDFS filesystem. Please back up your edit log and image before trying this! Are you ready "
        "to proceed? (Y or N)",
        code=UNEXPECTED,
        refusal="recovery was not begun; nothing was changed.",
    )
    recovery = Recovery(choose=request.choose, always=consent.force)
    return event_loop.run(recover(request.conf, request.place, recovery))


def metadata_version(request: Request) -> str:
    """Return the layout versions of our software and of the name directories."""
    storage = open_name_dirs(identity.name_directories(request.conf, request.place.address))
    try:
        stored = storage.namespace_info.layout_version
    finally:
        storage.close()
    return f"HDFS Image Version: {stored}\nSoftware format version: {LAYOUT_VERSION}"


def new_cluster_id() -> str:
    return f"CID-{uuid.uuid4()}"


MODES: Final = (
    Mode("format", ("--format", "-format"), "Create a new, empty file system.", format_file_system),
    Mode(
        "initialize_shared_edits",
        ("--initialize-shared-edits", "-initializeSharedEdits"),
        "Give the JournalNodes the edits of a NameNode that had none.",
        initialize,
    ),
    Mode(
        "bootstrap_standby",
        ("--bootstrap-standby", "-bootstrapStandby"),
        "Copy the namespace of the other NameNode, to become its standby.",
        bootstrap,
    ),
    Mode(
        "prepare",
        ("--prepare",),
        "Have an image here, whatever there is, or refuse: for containers; changes nothing twice.",
        prepare_directories,
    ),
    Mode(
        "recover",
        ("--recover", "-recover"),
        "Load what can be read of damaged edits, ask at each problem, and save the result.",
        recover_namespace,
    ),
    Mode(
        "metadata_version",
        ("--metadata-version", "-metadataVersion"),
        "Print the layout versions of software and storage.",
        metadata_version,
    ),
)

NOT_BUILT: Final = {
    "-upgrade": "Upgrade with the Hadoop version that wrote the directory, then use it here.",
    "-upgradeOnly": "Upgrade with the Hadoop version that wrote the directory, then use it here.",
    "-rollback": "Roll back with the Hadoop version that began the upgrade.",
    "-rollingUpgrade": "Layout versions -52 to -67 are read as they are.",
    "-importCheckpoint": "Copy the checkpoint's fsimage_N and its .md5 into the name directory.",
    "-backup": "A standby NameNode does a backup node's work: --bootstrap-standby.",
    "-checkpoint": "To make a checkpoint from files: nnha checkpoint merge.",
    "-finalize": "Use Hadoop's dfsadmin -finalizeUpgrade with the version that upgraded.",
    "-observer": "nnha serves no observers.",
}
"""Hadoop's start-up options that are not built here, and what to do instead."""
