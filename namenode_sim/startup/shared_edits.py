"""``--initialize-shared-edits``: give a quorum journal the edits that a single NameNode wrote.

Everything that can be checked is checked before anything changes: the name directory is loaded and
every edit replayed, and the JournalNodes are asked what they hold.  If the copying itself fails the
journal is incomplete; a NameNode that still has the edits next to its image then refuses to become
active (``NameNode.must_reach``), so that a second run is all that is needed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from ha.conf.configuration import Configuration
from ha.daemon.process import ExitWith
from ha.record import dataclass, replace
from journal.errors import JournalError, NotFormatted
from journal.links.quorum_call import ask_once
from journal.links.remote_node import JournalAddress
from journal.messages import namespace_of
from journal.model import JournalId, NamespaceInfo, TxId
from journal.writer.writer import QuorumWriter
from namenode_sim.edits.codec import LENGTH_LAYOUT
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.segment_file import open_segment
from namenode_sim.startup import identity
from namenode_sim.startup.beside_active import refuse_active
from namenode_sim.startup.questions import Consent
from namenode_sim.storage import local_edits
from namenode_sim.storage.local_copies import keep_as_own
from namenode_sim.storage.local_edits import replay
from namenode_sim.storage.storage import NameStorage, open_name_dirs

log = structlog.get_logger()

ABORTED: Final = 1
"""Hadoop's exit code of an initialization that was not carried out."""
BATCH_BYTES: Final = 512 * 1024
STATUS_TIMEOUT_SECONDS: Final = 10.0
SETTLE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class LocalState:
    """What a name directory holds: an image, and the segments with the edits behind it."""

    image_txid: TxId
    last_txid: TxId
    segments: tuple[local_edits.LocalSegment, ...]


async def initialize_shared_edits(
    conf: Configuration, place: identity.NameNodeIdentity, consent: Consent
) -> LocalState:
    """Format the JournalNodes with the local ids and copy the edits behind the newest image.

    Raises:
        ExitWith: 1, if it was refused (a NameNode is active, or may be) or failed; the message
            says what state things are in.
        StorageError: if the name directory cannot be used, or another process uses it.
        ImageError: if the image is not sound.
        EditsError: if the local edits are not sound or not complete; nothing is changed then.
    """
    storage = open_name_dirs(identity.name_directories(conf, place.address))
    try:
        directories = identity.edits_directories(conf, place.address)
        state = load_and_check(storage, directories)
        occupied = await ask_nodes(place, storage.namespace_info)
        if occupied:
            await refuse_active(
                place,
                code=ABORTED,
                because="and its journal would be erased; nothing was changed, and --force does "
                "not override this. Stop all NameNodes first.",
            )
            consent.require(
                f"Re-format the journal {place.journal.journal_id} on {', '.join(occupied)} ? "
                "Its edits are erased. (Y or N)",
                code=ABORTED,
                refusal=f"the journal {place.journal.journal_id} already exists on "
                f"{', '.join(occupied)}, and nothing was changed. If these JournalNodes hold "
                "nothing that you need, give --force.",
            )
        closed = replace(state, segments=_close_segments(directories, state))
        for directory in directories:
            keep_as_own(directory)  # from here on the journal may be less than a copy of it
        await _fill_journal(conf, place, storage, closed, force=bool(occupied))
        return closed
    finally:
        storage.close()


def load_and_check(storage: NameStorage, directories: list[Path]) -> LocalState:
    """Load the newest image and replay all local edits behind it, changing nothing.

    Raises:
        ImageError, EditsError: what is not sound, or missing.
    """
    namespace = storage.load()
    image = namespace.last_applied
    segments = local_edits.chain(
        local_edits.list_segments(directories), TxId(image + 1), at_least=storage.seen_txid
    )
    for segment in segments:
        _ensure_framed(segment.path)
    replay(namespace, segments)
    log.info(
        "shared_edits.local_namespace",
        image_txid=image,
        last_txid=namespace.last_applied,
        segments=len(segments),
        inodes=len(namespace.tree.inodes),
    )
    return LocalState(image, namespace.last_applied, segments)


def _ensure_framed(path: Path) -> None:
    with open_segment(path) as file:
        if file.layout > LENGTH_LAYOUT:
            raise EditsError(
                f"layout {file.layout} has no frame lengths, and JournalNodes do not store it. "
                "Make an image of these edits first: nnha checkpoint merge",
                file=str(path),
            )


async def ask_nodes(place: identity.NameNodeIdentity, ours: NamespaceInfo) -> list[str]:
    """Return the JournalNodes where the journal exists already.

    Raises:
        ExitWith: 1, if a node does not answer, or holds another file system's journal.
    """
    journal = JournalAddress(JournalId(place.journal.journal_id), place.address.nameservice)
    answers = await ask_once(
        place.journal_nodes, journal, lambda remote: remote.status(STATUS_TIMEOUT_SECONDS)
    )
    occupied = []
    for node, answer in answers.items():
        if isinstance(answer, NotFormatted):
            continue
        if isinstance(answer, JournalError):
            raise ExitWith(
                ABORTED,
                f"the JournalNode {node} does not answer: {answer}. All JournalNodes must be up "
                "for this; nothing was changed.",
            )
        theirs = namespace_of(answer.namespace_info)
        if (theirs.namespace_id, theirs.cluster_id) != (ours.namespace_id, ours.cluster_id):
            raise ExitWith(
                ABORTED,
                f"the journal {place.journal.journal_id} on {node} belongs to another file "
                f"system: cluster {theirs.cluster_id}, namespace {theirs.namespace_id}; ours is "
                f"cluster {ours.cluster_id}, namespace {ours.namespace_id}. It is not touched, "
                "not even by --force: name another journal id in dfs.namenode.shared.edits.dir, "
                "or other JournalNodes.",
            )
        occupied.append(str(node))
    return occupied


def _close_segments(
    directories: list[Path], state: LocalState
) -> tuple[local_edits.LocalSegment, ...]:
    """Close what a crash left open, and list the segments again under their final names."""
    if not state.segments:
        return ()
    for directory in directories:
        local_edits.recover_unclosed(directory)
    first = TxId(state.image_txid + 1)
    return local_edits.chain(
        local_edits.list_segments(directories), first, at_least=state.last_txid
    )


async def _fill_journal(
    conf: Configuration,
    place: identity.NameNodeIdentity,
    storage: NameStorage,
    state: LocalState,
    *,
    force: bool,
) -> None:
    writer = identity.journal_writer(conf, place, storage.namespace_info)
    copied = TxId(0)
    formatted = False
    try:
        await writer.format(force=force)
        formatted = True
        await writer.become_writer()
        for segment in state.segments:
            await copy_segment(writer, segment)
            copied = segment.last
            log.info("shared_edits.copied", segment=segment.path.name, of=state.last_txid)
        # A quorum has it all; the nodes behind it get their chance before we hang up.
        await writer.settle(timeout_seconds=SETTLE_SECONDS)
    except (JournalError, EditsError) as failure:
        so_far = _state_after_failure(place, state, formatted=formatted, copied=copied)
        raise ExitWith(ABORTED, f"{so_far} The reason: {failure}") from failure
    finally:
        await writer.close()


def _state_after_failure(
    place: identity.NameNodeIdentity, state: LocalState, *, formatted: bool, copied: TxId
) -> str:
    """Return what state things are in after a failure, and what to do."""
    journal = place.journal.journal_id
    if not formatted:
        return (
            f"the journal {journal} could not be formatted; some JournalNodes may hold an empty "
            "one. The name directory has everything it had. Run the same command with --force "
            "when all JournalNodes are up."
        )
    held = f"edits up to {copied}" if copied else "none"
    return (
        f"the journal {journal} is formatted, and of the edits {state.image_txid + 1} to "
        f"{state.last_txid} it holds {held}: it is not complete. The name directory has "
        "everything it had, and its NameNode refuses to become active before the journal has it "
        "too. Run the same command with --force."
    )


async def copy_segment(writer: QuorumWriter, segment: local_edits.LocalSegment) -> None:
    """Write one local segment into the journal, byte for byte, in batches.

    Raises:
        EditsError: if its edits are not sound any more.
        JournalError: when no quorum takes them.
    """
    with open_segment(segment.path) as file:
        await writer.start_segment(segment.first, layout_version=file.layout)
    first = segment.first
    for count, records in _batches(segment):
        await writer.write(first, count, records)
        first = TxId(first + count)
    await writer.finalize_segment(segment.last)


def _batches(segment: local_edits.LocalSegment) -> Iterator[tuple[int, bytes]]:
    """Yield runs of whole frames of about ``BATCH_BYTES``, each with its number of edits."""
    frames: list[bytes] = []
    size = 0
    for _, frame in local_edits.frames_of(segment):
        if frames and size + len(frame) > BATCH_BYTES:
            yield len(frames), b"".join(frames)
            frames, size = [], 0
        frames.append(frame)
        size += len(frame)
    if frames:
        yield len(frames), b"".join(frames)
