"""Read a journal's folder at start: finish what a crash cut short, then say what is there."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from ha.record import dataclass, field, replace
from journal.core.state import Decision, JournalState
from journal.errors import StorageFailed
from journal.model import NO_EPOCH, NO_TXID, Epoch, TxId
from journal.storage import incarnation as storage_incarnation
from journal.storage import layout, small_files
from journal.storage.files import Files, write_durably
from journal.storage.records import record_bytes, record_of
from journal.storage.segment_check import Judge, Judged, judge_finalized, load_records
from journal.storage.segment_file import inspect
from journal.storage.small_files import ensure_promise
from journal.storage.upgrade import previous_namespace, settle

log = structlog.get_logger()


@dataclass(slots=True)
class Loaded:
    """What lies on the disk.  ``ends`` has the offsets behind the last edits, where known."""

    state: JournalState
    ends: dict[TxId, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """The files of ``current`` by what their names mean."""

    finalized: dict[TxId, TxId] = field(default_factory=dict)
    in_progress: list[TxId] = field(default_factory=list)
    downloads: list[layout.DownloadedFile] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)


def load(files: Files, root: Path, fresh_id: storage_incarnation.FreshId) -> Loaded:
    """Load one journal.

    A crashed process may have left names and bytes that only the page cache holds.  Whatever is
    reported from here on has been synced first, or a power cut could take back what we said.

    Raises:
        StorageFailed: a file is corrupt or cannot be read; nothing was lost by looking.
    """
    try:
        return _load(files, root, fresh_id)
    except OSError as failure:
        raise StorageFailed(
            f"cannot load the journal in {root}: {failure}. Nothing was acknowledged; check the "
            "disk and the folder's owner and mode."
        ) from failure


def _load(files: Files, root: Path, fresh_id: storage_incarnation.FreshId) -> Loaded:
    current = root / layout.CURRENT
    settle(files, root)
    files.remove(root / layout.FETCHED)
    version = files.read(current / layout.VERSION)
    if version is None:
        names = files.names(current)
        if names:
            files.sync_folder(current)  # a format was cut short: it stays cut short
        return Loaded(JournalState(occupied=_holds_something(files, current, names)))
    namespace = small_files.parse_version(current / layout.VERSION, version)
    found = _sort_names(files, current)
    decisions = _load_decisions(files, current / layout.PAXOS)
    writer = _epoch(files, current / layout.WRITER)
    promised = _epoch(files, current / layout.PROMISE)
    ensure_promise(current / layout.PROMISE, promised, writer, decisions)
    for name in found.unfinished:
        files.remove(current / name)
    for download in found.downloads:
        if _settle_download(files, current, download, decisions, found.finalized):
            found.in_progress.append(download.first)
    committed = small_files.parse_committed(
        current / layout.COMMITTED, files.read(current / layout.COMMITTED)
    )
    judged = _judge(files, current, found, committed, writer)
    incarnation = _incarnation(files, current, fresh_id)
    files.make_folder(current / layout.PAXOS)
    files.make_folder(current / layout.SEGMENTS)
    for folder in (current / layout.PAXOS, current / layout.SEGMENTS, current, root):
        files.sync_folder(folder)
    held = (*judged.segments.values(), *(damage.segment for damage in judged.damaged.values()))
    last = max((segment.last for segment in held), default=NO_TXID)
    state = JournalState(
        namespace=namespace,
        incarnation=incarnation.id,
        learner=incarnation.learner,
        promised=promised,
        writer=writer,
        # Hadoop's file, and an older one of ours, may say more than is here.
        committed=TxId(min(committed, last)),
        claimed=TxId(min(committed, last)),
        previous=previous_namespace(files, root),
        purged=small_files.parse_txid(current / layout.PURGED, files.read(current / layout.PURGED)),
        read_lease_micros=_epoch(files, current / layout.READ_LEASE),
        segments=dict(sorted(judged.segments.items())),
        damaged=judged.damaged,
        decisions=decisions,
    )
    return Loaded(state, judged.ends)


def _holds_something(files: Files, current: Path, names: Sequence[str]) -> bool:
    """Return whether an unformatted folder has more than a first format makes before VERSION."""
    begun = {layout.PAXOS, layout.SEGMENTS, layout.INCARNATION, layout.VERSION}
    return any(name.removesuffix(layout.UNFINISHED) not in begun for name in names) or any(
        files.names(current / folder) for folder in (layout.PAXOS, layout.SEGMENTS)
    )


def _incarnation(
    files: Files, current: Path, fresh_id: storage_incarnation.FreshId
) -> storage_incarnation.Incarnation:
    """Return the folder's incarnation.

    A folder that is not the one that was given a vote begins a new life, as a learner.
    """
    found = storage_incarnation.read_incarnation(files, current)
    if isinstance(found, storage_incarnation.Incarnation):
        return found
    fresh = storage_incarnation.Incarnation(fresh_id(), storage_incarnation.NOT_ADMITTED)
    storage_incarnation.write_incarnation(files, current, fresh)
    log.warning("journal.learner", folder=str(current), incarnation=fresh.id, because=found)
    return fresh


def _judge(files: Files, current: Path, found: _Found, committed: TxId, writer: Epoch) -> Judged:
    judged = Judged()
    live = {*found.finalized, *found.in_progress}
    records = load_records(files, current / layout.SEGMENTS, live)
    for first, last in found.finalized.items():
        judge_finalized(files, current, first, last, records, judged)
    for first in sorted(set(found.in_progress)):
        newest = first == max(live)
        judge = Judge(files, current, committed, writer if newest else NO_EPOCH, judged)
        if first in found.finalized:
            # Only foreign tools leave both (HDFS-16645).  What is finalized was decided.
            judge.move_aside(first, "stale", "a finalized segment begins there too")
        else:
            judge.judge(first, records.get(first))
    return judged


def _epoch(files: Files, path: Path) -> Epoch:
    """Read an epoch, or another number that is 0 before it is written."""
    return small_files.parse_epoch(path, files.read(path))


def _sort_names(files: Files, current: Path) -> _Found:
    found = _Found()
    for name in files.names(current):
        match layout.meaning(name):
            case layout.FinalizedFile(first, last):
                if first in found.finalized:
                    raise StorageFailed(
                        f"{current} has two finalized segments beginning at {first}. Nothing was "
                        "changed. Remove the one that the other nodes do not have."
                    )
                found.finalized[first] = last
            case layout.InProgressFile(first):
                found.in_progress.append(first)
            case layout.DownloadedFile() as download:
                found.downloads.append(download)
            case layout.UnfinishedFile():
                found.unfinished.append(name)
            case None:
                pass
    return found


def _load_decisions(files: Files, paxos: Path) -> dict[TxId, Decision]:
    decisions = {}
    for name in files.names(paxos):
        path = paxos / name
        if name.endswith(layout.UNFINISHED):
            files.remove(path)
            continue
        first = layout.segment_start(name)
        data = files.read(path)
        if first is not None and data is not None:
            decisions[first] = small_files.parse_decision(path, first, data)
    return decisions


def _settle_download(
    files: Files,
    current: Path,
    download: layout.DownloadedFile,
    decisions: Mapping[TxId, Decision],
    finalized: Mapping[TxId, TxId],
) -> bool:
    """Roll a durable decision forward, or drop bytes that nothing was decided about.

    The bytes are looked at once more: the same epoch may have begun to fetch them again.

    See docs/reference/journal-node.md#acceptrecovery.
    """
    path = current / layout.download_name(download.first, download.epoch)
    decision = decisions.get(download.first)
    if decision is not None and decision.epoch == download.epoch:
        wanted = decision.segment
        contents = inspect(files, path, download.first, last_wanted=wanted.last)
        if contents.last == wanted.last and contents.digest == wanted.digest:
            # The record names the decided writer.  Before the decision itself is durable, a power
            # cut would leave that name next to the older edits.
            files.sync_folder(current / layout.PAXOS)
            files.sync_file(path)
            files.make_folder(current / layout.SEGMENTS)
            # Over a finalized file only the repair of damage has put its decision on record.
            repaired = finalized.get(wanted.first) == wanted.last
            adopted = replace(wanted, finalized=repaired)
            write_durably(
                files,
                current / layout.SEGMENTS / str(wanted.first),
                record_bytes(record_of(adopted, contents.end)),
            )
            files.rename(path, current / adopted.name())
            log.info("recovery.rolled_forward", segment=download.first, epoch=download.epoch)
            return not repaired
    files.remove(path)
    log.info("recovery.download_dropped", segment=download.first, epoch=download.epoch)
    return False
