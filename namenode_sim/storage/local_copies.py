"""Copies of the quorum's edits in the NameNode's own edit directories, as Hadoop's journal set.

The quorum alone decides whether an edit is committed.  Each directory has a thread of its own that
writes what it is handed and syncs once for all that has gathered, so that a slow or dead disk never
delays a commit; one that fails or falls behind is dropped, and tried again with the next segment.
What such a directory holds at its end may never have been acknowledged: it is never read as if it
had been (``copies_from``).
"""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from ha.record import dataclass
from hadoop.durable import rename_durably, sync_folder, write_durably
from journal.model import TxId
from namenode_sim.edits.file_header import header_bytes
from namenode_sim.edits.segment_file import named_range
from namenode_sim.metrics import LOCAL_EDITS_FAILED
from namenode_sim.storage.retention import purge_segments

log = structlog.get_logger()

QUEUE_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""A directory that is this far behind the quorum is dropped until the next segment."""
GATHER_SECONDS: Final = 0.02
"""How long edits wait for more of them: no commit waits for a copy, and each flush costs one."""
MARK: Final = "nnha_copies_from"


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a segment of edits in a layout."""

    first: TxId
    layout: int


@dataclass(frozen=True, slots=True)
class Append:
    """Framed edits of the open segment."""

    records: bytes


@dataclass(frozen=True, slots=True)
class Finalize:
    """The quorum has closed the open segment, which ends here."""

    last: TxId


@dataclass(frozen=True, slots=True)
class Purge:
    """Every image has the edits before this one."""

    minimum: TxId


Work = Start | Append | Finalize | Purge | None
"""None: close, and end the thread."""


def copies_from(directory: Path) -> TxId | None:
    """Return the first edit that lies here as a copy of the quorum's; None without one."""
    try:
        return TxId(int((directory / "current" / MARK).read_text(encoding="ascii")))
    except (FileNotFoundError, ValueError):
        return None


def keep_as_own(directory: Path) -> None:
    """Let what lies here as copies count as written here: the quorum may not have it any more."""
    mark = directory / "current" / MARK
    if mark.exists():
        mark.unlink()
        sync_folder(mark.parent)


class LocalCopy:
    """One directory.  Its owner hands over work from the event loop; the thread does it."""

    def __init__(self, directory: Path, on_failure: Callable[[Path, str], None]) -> None:
        self.directory = directory
        self.failed_because: str | None = None
        self._on_failure = on_failure
        self._waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._hurry = threading.Event()
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._first = TxId(0)
        self._thread = threading.Thread(target=self._run, name=f"edits {directory}", daemon=True)
        self._thread.start()

    def hand(self, work: Work) -> None:
        """Queue work; a directory that failed comes back with a segment's start."""
        if isinstance(work, Start):
            self.failed_because = None
        size = _size(work)
        if self.failed_because is not None and not isinstance(work, Purge | None):
            return
        with self._lock:
            self._waiting_bytes += size
            behind = self._waiting_bytes > QUEUE_LIMIT_BYTES
        if behind:
            self._fail(f"it is more than {QUEUE_LIMIT_BYTES} bytes behind the quorum")
        self._waiting.put(work)
        if not isinstance(work, Append):
            self._hurry.set()

    def close(self, timeout_seconds: float) -> None:
        """Write what is queued and end the thread; a disk that hangs is left to itself."""
        self.hand(None)
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while True:
            gathered: list[Work] = [self._waiting.get()]
            if isinstance(gathered[0], Append):
                self._hurry.wait(GATHER_SECONDS)
            self._hurry.clear()
            while not self._waiting.empty():
                gathered.append(self._waiting.get())
            try:
                self._carry_out(gathered)
            except OSError as failure:
                # What follows until the next start would leave a hole in the file.
                self._drop_file()
                self._fail(failure.strerror or str(failure))
            except Exception as failure:
                # Without a thread what follows would be queued, and the failure never reported.
                log.exception("local_edits.broken", directory=str(self.directory))
                self._drop_file()
                self._fail(f"{type(failure).__name__}: {failure}")
            with self._lock:
                self._waiting_bytes -= sum(_size(work) for work in gathered)
            if None in gathered:
                self._drop_file()
                return

    def _carry_out(self, gathered: Sequence[Work]) -> None:
        for work in gathered:
            if isinstance(work, Start):
                self._start(work.first, work.layout)
            elif isinstance(work, Purge):
                spared = None if self._file is None else Path(self._file.name)
                purge_segments(self.directory / "current", work.minimum, spared)
            elif self._file is None:
                continue
            elif isinstance(work, Append):
                self._file.write(work.records)
            elif isinstance(work, Finalize):
                self._finalize(work.last)
        if self._file is not None:
            self._file.flush()
            os.fdatasync(self._file.fileno())

    def _start(self, first: TxId, layout: int) -> None:
        self._drop_file()
        current = self.directory / "current"
        current.mkdir(parents=True, exist_ok=True)
        if copies_from(self.directory) is None:
            write_durably(current / MARK, b"%d\n" % first)
        mark = copies_from(self.directory) or first
        for left in sorted(current.glob("edits_inprogress_*")):
            found = named_range(left.name)
            # An earlier term's, never closed: the quorum has its true end, we may not.
            if found is not None and not left.suffix and found.first >= mark:
                rename_durably(left, left.with_name(f"{left.name}.stale"))
        path = current / f"edits_inprogress_{first:019d}"
        self._file, self._first = path.open("xb"), first
        self._file.write(header_bytes(layout))
        sync_folder(current)

    def _finalize(self, last: TxId) -> None:
        assert self._file is not None
        self._file.flush()
        os.fdatasync(self._file.fileno())
        path = Path(self._file.name)
        self._drop_file()
        rename_durably(path, path.with_name(f"edits_{self._first:019d}-{last:019d}"))

    def _drop_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as failure:
                log.warning("local_edits.not_closed", path=file.name, because=str(failure))

    def _fail(self, why: str) -> None:
        if self.failed_because is not None:
            return
        self.failed_because = why
        log.warning("local_edits.dropped", directory=str(self.directory), because=why)
        self._on_failure(self.directory, why)


def _size(work: Work) -> int:
    return len(work.records) if isinstance(work, Append) else 0


class LocalCopies:
    """All local edit directories of one NameNode, for its whole life."""

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        required: Sequence[Path] = (),
    ) -> None:
        self._required = frozenset(required)
        self._loop = asyncio.get_running_loop()
        self._on_required_lost: Callable[[str], None] = lambda _why: None
        self._copies = tuple(LocalCopy(one, self._failed) for one in directories)
        LOCAL_EDITS_FAILED.set_function(lambda: len(self.failed()))

    def hand(self, work: Work) -> None:
        for copy in self._copies:
            copy.hand(work)

    def failed(self) -> dict[str, str]:
        return {str(c.directory): c.failed_because for c in self._copies if c.failed_because}

    def directories(self) -> list[str]:
        return [str(copy.directory) for copy in self._copies]

    def close(self, *, timeout_seconds: float = 2.0) -> None:
        """Write what is queued, as far as the disks let us."""
        for copy in self._copies:
            copy.close(timeout_seconds)

    def on_required_lost(self, tell: Callable[[str], None]) -> None:
        """Set what to call, on the loop, when a directory has failed that must not."""
        self._on_required_lost = tell

    def _failed(self, directory: Path, why: str) -> None:
        if directory in self._required:
            told = f"the required edits directory {directory} failed: {why}"
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._on_required_lost, told)
