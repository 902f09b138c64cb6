"""Carry out a journal's effects in order; the first failure is the last thing it does."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from journal.core import effects
from journal.core.state import JournalState
from journal.errors import StorageFailed, ensure
from journal.frame import file_header
from journal.model import Epoch, Segment, TxId
from journal.storage import layout, segment_file, small_files, upgrade
from journal.storage.download import Download
from journal.storage.files import (
    Files,
    InPlaceFile,
    OpenFile,
    RealFiles,
    remove_durably,
    write_durably,
)
from journal.storage.format import format_folder
from journal.storage.incarnation import (
    FreshId,
    Incarnation,
    admitted_by,
    random_id,
    write_incarnation,
)
from journal.storage.load import load
from journal.storage.purge import purge
from journal.storage.records import SegmentRecord, record_bytes, record_of


class Disk:
    """One journal's folder.  Every call blocks; one comes after the other, whoever calls.

    Raises StorageFailed from any call once a write or a sync has failed: what the disk then
    holds is unknown until the folder is loaded again (docs/reference/journal-node.md#failed-disks).
    """

    def __init__(
        self, root: Path, files: Files | None = None, *, fresh_id: FreshId = random_id
    ) -> None:
        self._files = files if files is not None else RealFiles()
        self._root = root
        self._current = root / layout.CURRENT
        self._writing: segment_file.Writing | None = None
        self._abandoned: segment_file.Writing | None = None
        self._committed: InPlaceFile | None = None
        self._ends: dict[TxId, int] = {}
        self._downloading: dict[Path, OpenFile] = {}
        self.failed_because: str | None = None
        """The first failure of a write or sync, or None."""
        self._fresh_id = fresh_id

    def load(self) -> JournalState:
        """Read the folder, after finishing what a crash cut short."""
        self._require_sound()
        self._abandoned = None
        loaded = load(self._files, self._root, self._fresh_id)
        self._ends = loaded.ends
        return loaded.state

    def run(self, wanted: Sequence[effects.Effect]) -> None:
        """Carry out effects in order.  Appends that stand together share one sync."""
        self._require_sound()
        try:
            self._run(wanted)
        except OSError as failure:
            raise self._give_up("write to the journal", failure) from failure

    def _run(self, wanted: Sequence[effects.Effect]) -> None:
        committed: TxId | None = None
        for effect in wanted:
            if isinstance(effect, effects.AppendEdits):
                self._abandoned = None
                self._append(effect.segment_first, effect.records)
            elif isinstance(effect, effects.RememberCommitted):
                committed = effect.txid
            else:
                self._sync()
                if not isinstance(effect, segment_file.LEAVE_SEGMENTS_ALONE):
                    self._abandoned = None
                self._carry_out(effect)
        self._sync()
        if committed is not None:
            self._remember(committed)

    def digest(self, segment: Segment) -> Segment:
        """Return the segment with its content digest, computed from the file if need be.

        Raises:
            StorageFailed: its file is damaged or cannot be read; the journal goes on.
        """
        writing = self._writing
        if writing is not None and writing.first == segment.first:
            return replace(segment, finalized=False, digest=writing.hash.digest())
        sure = self._as_abandoned(segment)
        # A takeover asks for it right after a promise has closed it, and waits for this.
        return sure if sure is not segment else self.reread(segment)

    def reread(self, segment: Segment) -> Segment:
        """Return a closed segment with the content digest of its file, whatever is recorded.

        Raises:
            StorageFailed: as for ``digest``; where a digest is known, so is another one damage.
        """
        segment = self._as_abandoned(segment)
        found = segment_file.read_whole(self._files, self._current / segment.name(), segment)
        self._ends[segment.first] = found.end
        return replace(segment, digest=found.digest, layout_version=found.layout_version)

    def _as_abandoned(self, segment: Segment) -> Segment:
        left = self._abandoned
        if left is None or left.first != segment.first or segment.finalized:
            return segment
        return replace(segment, digest=left.hash.digest())

    def extent(self, segment: Segment) -> segment_file.Extent:
        """Return the bytes of a segment that are durable and known to be edits."""
        path = self._current / segment.name()
        writing = self._writing
        if writing is not None and writing.first == segment.first:
            return segment_file.Extent(path, writing.end)
        if segment.first not in self._ends:
            self.digest(segment)
        return segment_file.Extent(path, self._ends[segment.first])

    def begin_download(self, first: TxId, epoch: Epoch) -> Download:
        """Create a file next to the segment for the bytes of a recovery."""
        with self._working("create a file for a recovery"):
            return self._download(self._current / layout.download_name(first, epoch))

    def path_of(self, segment: Segment) -> Path:
        """Return where a closed segment's file lies, or should."""
        return self._current / segment.name()

    def names(self) -> list[str]:
        """Return the names in the journal's folder.

        Raises:
            StorageFailed: it cannot be listed; the journal goes on, for nothing was written.
        """
        try:
            return self._files.names(self._current)
        except OSError as failure:
            raise StorageFailed(f"could not list {self._current}: {failure}") from failure

    def begin_fetch(self, segment: Segment) -> Download:
        """Create a file outside ``current`` for a finalized segment of a peer."""
        with self._working("create a file for a peer's segment"):
            path = self._root / layout.FETCHED / segment.name()
            self._files.make_folder(path.parent)
            return self._download(path)

    def _download(self, path: Path) -> Download:
        file = self._downloading[path] = self._files.create(path)
        return Download(self._files, path, file, working=self._working, forget=self._forget)

    def _forget(self, path: Path) -> None:
        self._downloading.pop(path, None)

    def drop_fetched(self, segment: Segment) -> None:
        """Remove a peer's segment that was fetched and is not wanted any more."""
        path = self._root / layout.FETCHED / segment.name()
        with self._working("drop a peer's segment"):
            self._files.remove(path)
        self._forget(path)

    def close(self) -> None:
        """Close what is open."""
        self._forget_committed()
        if self._writing is not None:
            self._writing.file.close()
            self._writing = None

    @contextmanager
    def _working(self, what: str) -> Iterator[None]:
        self._require_sound()
        try:
            yield
        except OSError as failure:
            raise self._give_up(what, failure) from failure

    def _require_sound(self) -> None:
        if self.failed_because is not None:
            raise StorageFailed(self.failed_because)

    def _give_up(self, what: str, failure: OSError) -> StorageFailed:
        self.failed_because = f"could not {what} in {self._root}: {failure}"
        self.close()
        for file in self._downloading.values():
            file.close()  # it can be neither finished nor discarded any more
        return StorageFailed(self.failed_because)

    def _remember(self, committed: TxId) -> None:
        # Its descriptor is kept: to open and close the file costs ten times as much as to write.
        if self._committed is None:
            self._committed = self._files.open_in_place(self._current / layout.COMMITTED)
        self._committed.overwrite(small_files.committed_bytes(committed))

    def _forget_committed(self) -> None:
        """Another folder takes the place of the one whose file is open, or none does."""
        if self._committed is not None:
            self._committed.close()
            self._committed = None

    def _carry_out(self, effect: effects.RareEffect) -> None:  # noqa: C901, PLR0912 - one case each
        if isinstance(effect, effects.UpgradeEffect):
            self._forget_committed()
            upgrade.carry_out(self._files, self._root, effect)
            return
        match effect:
            case effects.FormatStorage():
                self._format(effect)
            case effects.PersistAdmission(incarnation, by):
                admitted = Incarnation(incarnation, admitted_by(by))
                write_incarnation(self._files, self._current, admitted)
            case effects.PersistPromise(epoch):
                self._write(layout.PROMISE, small_files.epoch_text(epoch))
            case effects.PersistWriter(epoch):
                self._write(layout.WRITER, small_files.epoch_text(epoch))
            case effects.PersistReadLease(micros):
                self._write(layout.READ_LEASE, small_files.txid_text(TxId(micros)))
            case effects.MoveAside(first):
                self._move_aside(first, "stale")
            case effects.CreateSegment(first, layout_version, writer):
                self._create(SegmentRecord(first, writer, layout_version))
            case effects.RecordSegment(segment):
                self._record(record_of(segment, self._ends[segment.first]))
            case effects.AbandonSegment(first, empty):
                self._abandon(first, empty=empty)
            case effects.FinalizeSegment(segment):
                self._finalize(segment)
            case effects.PersistDecision(decision):
                self._files.make_folder(self._current / layout.PAXOS)
                self._write(
                    f"{layout.PAXOS}/{decision.segment.first}", small_files.decision_bytes(decision)
                )
            case effects.ForgetDecision(first):
                remove_durably(self._files, self._current / layout.PAXOS / str(first))
            case effects.AdoptDownload(segment, epoch):
                self._adopt(segment, epoch)
            case effects.ReopenSegment(first, digest=digest):
                self._reopen(first, digest)
            case effects.DropDownload(first, epoch):
                download = self._current / layout.download_name(first, epoch)
                self._files.remove(download)
                self._forget(download)
            case effects.PurgeFiles(minimum, segments):
                self._write(layout.PURGED, small_files.txid_text(minimum))
                purge(self._files, self._current, effect, self._downloading)
                for purged in segments:
                    self._ends.pop(purged.first, None)
            case effects.AdoptFetched(segment):
                self._adopt_fetched(segment)
            case _:
                assert_never(effect)

    def _write(self, name: str, data: bytes) -> None:
        write_durably(self._files, self._current / name, data)

    def _record(self, record: SegmentRecord) -> None:
        self._files.make_folder(self._current / layout.SEGMENTS)
        self._write(f"{layout.SEGMENTS}/{record.first}", record_bytes(record))

    def _format(self, effect: effects.FormatStorage) -> None:
        self.close()
        format_folder(self._files, self._root, effect)

    def _create(self, record: SegmentRecord) -> None:
        first = record.first
        ensure(self._writing is None, f"segment {first} begins while another is open")
        self._record(record)
        path = self._current / layout.in_progress_name(first)
        unfinished = path.with_name(path.name + layout.UNFINISHED)
        header = file_header(record.layout_version)
        file = self._files.create(unfinished)
        self._writing = segment_file.Writing(first, file, len(header), hashlib.sha256())
        file.append(header)
        file.sync()
        self._files.rename(unfinished, path)
        self._files.sync_folder(self._current)
        self._ends.pop(first, None)  # of what was moved aside, discarded or formatted over

    def _append(self, segment_first: TxId, records: bytes) -> None:
        writing = self._writing
        if writing is None or writing.first != segment_first:
            raise OSError(f"segment {segment_first} is not open")
        writing.dirty = True
        writing.file.append(records)
        writing.hash.update(records)
        self._ends[segment_first] = self._ends.get(segment_first, writing.end) + len(records)

    def _sync(self) -> None:
        """Make appended edits durable; only then may ``end`` show them to readers."""
        writing = self._writing
        if writing is not None and writing.dirty:
            writing.file.sync()
            writing.dirty = False
            writing.end = self._ends[writing.first]

    def _abandon(self, first: TxId, *, empty: bool) -> None:
        abandoned = self._writing
        self.close()
        if empty:
            self._move_aside(first, "empty")
        else:
            self._abandoned = abandoned

    def _move_aside(self, first: TxId, why: str) -> None:
        name = layout.in_progress_name(first)
        aside = layout.aside_name(name, why)
        self._files.rename(self._current / name, self._current / aside)
        self._files.sync_folder(self._current)

    def _reopen(self, first: TxId, digest: bytes) -> None:
        ensure(self._writing is None, f"segment {first} is opened while another is open")
        path = self._current / layout.in_progress_name(first)
        end = self._ends[first]
        if self._files.size(path) != end:
            self._files.truncate(path, end)
        so_far = segment_file.digest_up_to(self._files, path, end)
        if digest and so_far.digest() != digest:
            raise OSError(f"{path.name} has changed since it was read: it is damaged")
        self._writing = segment_file.Writing(first, self._files.reopen(path), end, so_far)

    def _finalize(self, segment: Segment) -> None:
        path = self._current / layout.in_progress_name(segment.first)
        final = segment.name()
        if final in self._files.names(self._current):
            raise OSError(f"{final} exists already")
        end = self._ends[segment.first]
        self._record(record_of(segment, end))
        if self._files.size(path) != end:
            self._files.truncate(path, end)
        self._files.rename(path, self._current / final)
        self._files.sync_folder(self._current)

    def _adopt(self, segment: Segment, epoch: Epoch) -> None:
        """Put the downloaded file in place; a crash behind the record is rolled forward.

        The decision is durable by then.
        """
        download = self._current / layout.download_name(segment.first, epoch)
        self._ends[segment.first] = self._files.size(download)
        self._record(record_of(segment, self._ends[segment.first]))
        self._files.rename(download, self._current / segment.name())
        self._files.sync_folder(self._current)
        self._forget(download)

    def _adopt_fetched(self, segment: Segment) -> None:
        """Give the fetched file its name first, then write its record.

        With an older in-progress file of that start next to it, a crash here is settled at load:
        what is finalized stays.  What is recorded about the older file must not be touched before
        that, or its bytes would pass for those of a newer writer.
        """
        fetched = self._root / layout.FETCHED / segment.name()
        end = self._files.size(fetched)
        self._files.rename(fetched, self._current / segment.name())
        self._forget(fetched)
        self._files.sync_folder(self._current)
        self._record(record_of(segment, end))
        if layout.in_progress_name(segment.first) in self._files.names(self._current):
            self._move_aside(segment.first, "stale")
        self._ends[segment.first] = end
