"""What the tests of the journal node share: edits that name their writer, and disks that fail."""

import hashlib
import itertools
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Final
from zlib import crc32

from journal.core import requests
from journal.core.effects import RestorePrevious, Step
from journal.core.machine import step
from journal.core.replies import Fetch, Reply
from journal.core.state import JournalState, digest_unknown, learn_digest
from journal.errors import InvariantBroken, JournalError, Rejected
from journal.frame import file_header
from journal.model import LAYOUT_VERSION, Epoch, NamespaceInfo, Segment, TxId
from journal.storage.disk import Disk
from journal.storage.files import Files
from journal.storage.segment_file import SegmentCheck

NAMESPACE = NamespaceInfo(LAYOUT_VERSION, 12345, "mycluster", 0, "my-bp")
LIFE = "0" * 32


def record(txid: int, writer: int = 1, size: int = 20) -> bytes:
    """Frame an op whose body names its writer: equal txids of two writers differ."""
    body = f"{writer}:{txid}:".encode().ljust(size, b".")
    frame = struct.pack(">BiQ", 3, 12 + len(body), txid) + body
    return frame + struct.pack(">I", crc32(frame))


def records(first: int, last: int, writer: int = 1) -> bytes:
    return b"".join(record(txid, writer) for txid in range(first, last + 1))


def digest(first: int, last: int, writer: int = 1) -> bytes:
    return hashlib.sha256(records(first, last, writer)).digest()


def segment(first: int, last: int, writer: int = 1, *, finalized: bool = False) -> Segment:
    content = digest(first, last, writer)
    return Segment(TxId(first), TxId(last), finalized, content, Epoch(writer), LAYOUT_VERSION)


def segment_bytes(first: int, last: int, writer: int = 1) -> bytes:
    return file_header() + records(first, last, writer)


@dataclass(slots=True)
class Writer:
    """Stamps requests as a client's channel does."""

    epoch: int
    serial: int = -1
    committed: int | None = None

    def stamp(self) -> requests.Stamp:
        self.serial += 1
        committed = None if self.committed is None else TxId(self.committed)
        return requests.Stamp(Epoch(self.epoch), self.serial, committed)

    def new_epoch(self, namespace: NamespaceInfo = NAMESPACE) -> requests.NewEpoch:
        return requests.NewEpoch(namespace, Epoch(self.epoch))

    def start(self, first: int, layout: int = LAYOUT_VERSION) -> requests.StartLogSegment:
        return requests.StartLogSegment(self.stamp(), TxId(first), layout)

    def batch(self, segment_first: int, first: int, last: int) -> requests.Journal:
        data = records(first, last, self.epoch)
        return requests.Journal(
            self.stamp(), TxId(segment_first), TxId(first), last - first + 1, data
        )

    def finalize(
        self, first: int, last: int, writer: int | None = None
    ) -> requests.FinalizeLogSegment:
        content = digest(first, last, self.epoch if writer is None else writer)
        return requests.FinalizeLogSegment(self.stamp(), TxId(first), TxId(last), content)


_disks: Final = list[Disk]()


def close_disks() -> None:
    """Close what local journals have left open."""
    while _disks:
        _disks.pop().close()


class LocalJournal:
    """A journal without a node around it: core and disk, one request at a time."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        if files is None:
            root.mkdir(parents=True, exist_ok=True)
        self.disk = Disk(root, files)
        if files is None:
            _disks.append(self.disk)  # a simulated disk holds nothing of this process
        self.state = self.disk.load()

    def ask(self, request: requests.Request) -> Reply:
        self.state = with_digest(self.state, request, self.disk.digest)
        result = step(self.state, request)
        self.disk.run(result.effects)
        self.state = result.state
        if any(isinstance(effect, RestorePrevious) for effect in result.effects):
            self.state = replace(self.disk.load(), serial=result.state.serial)
        if isinstance(result.reply, JournalError):
            raise result.reply
        return result.reply

    def accept(self, writer: Writer, decided: Segment, source: bytes) -> None:
        """Both halves of an acceptance, with the download in between."""
        reply = self.ask(requests.AcceptRecovery(writer.stamp(), decided))
        if isinstance(reply, Fetch):
            check = SegmentCheck(decided)
            download = self.disk.begin_download(decided.first, reply.epoch)
            try:
                for start in range(0, len(source), 50):
                    download.append(check.feed(source[start : start + 50]))
                check.finish()
            except ValueError:
                download.discard()
                raise
            download.finish()
            self.ask(requests.AdoptRecovery(reply.epoch, decided))

    def close(self) -> None:
        self.disk.close()


def with_digest(
    state: JournalState, request: requests.Request, compute: Callable[[Segment], Segment]
) -> JournalState:
    """Do what the node's owner does before a request that compares contents."""
    judged = getattr(request, "segment", None)
    first = judged.first if isinstance(judged, Segment) else getattr(request, "first", None)
    if isinstance(request, requests.StartLogSegment | requests.Journal) or first is None:
        return state
    if not digest_unknown(state, first):
        return state
    held = (
        state.open.as_segment() if state.open and state.open.first == first else state.find(first)
    )
    assert held is not None
    return learn_digest(state, compute(held))


def formatted(root: Path, files: Files | None = None) -> LocalJournal:
    journal = LocalJournal(root, files)
    journal.ask(requests.Format(NAMESPACE, incarnation=LIFE))
    return journal


def outcome(state: JournalState, request: requests.Request) -> Step | JournalError:
    try:
        return step(state, request)
    except (Rejected, InvariantBroken) as refusal:
        return refusal


class PowerCut(BaseException):
    """The machine is gone; no code of ours may run any more."""


@dataclass(slots=True)
class _Inode:
    """A file's bytes: what is cached, and what the platter has."""

    cached: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    number: int = field(default_factory=itertools.count(1).__next__)


class MemoryFiles:
    """A file system with a page cache: what was not synced is lost in a power cut.

    Names are durable only after their folder was synced, contents after the file was.
    ``fail_at`` raises the given error at the n-th operation that changes something.
    ``opened`` has the files that were not closed yet.
    """

    def __init__(self) -> None:
        self.names_cached: dict[PurePath, _Inode] = {}
        self.names_durable: dict[PurePath, _Inode] = {}
        self.operations = 0
        self.fail_at: int | None = None
        self.failure: BaseException = PowerCut()
        self.opened: set[_MemoryFile] = set()

    def cut_power(self, survives: Callable[[], bool]) -> None:
        """Forget what is not durable, but for what ``survives`` lets through, each on its own."""
        self.fail_at = None
        names = {}
        renames: dict[int, bool] = {}
        for path in {**self.names_durable, **self.names_cached}:
            outlives = survives()
            renamed = self._renamed(path)
            if renamed is not None:  # both names change in one step
                outlives = renames.setdefault(renamed.number, outlives)
            inode = (self.names_cached if outlives else self.names_durable).get(path)
            if inode is not None:
                names[path] = inode
        for inode in names.values():
            if not survives():
                inode.cached = bytearray(inode.durable)
            inode.durable = bytes(inode.cached)
        self.names_cached, self.names_durable = names, dict(names)

    def _renamed(self, path: PurePath) -> _Inode | None:
        """Return what was moved to this name, or away from it, since names were last durable."""
        here, before = self.names_cached.get(path), self.names_durable.get(path)
        if here is before:
            return None
        if here is not None and any(here is inode for inode in self.names_durable.values()):
            return here
        if before is not None and any(before is inode for inode in self.names_cached.values()):
            return before
        return None

    def _changing(self) -> None:
        self.operations += 1
        if self.fail_at is not None and self.operations >= self.fail_at:
            raise self.failure

    def names(self, folder: Path) -> list[str]:
        inside = [path.relative_to(folder) for path in self.names_cached if folder in path.parents]
        return sorted({path.parts[0] for path in inside})

    def size(self, path: Path) -> int:
        return len(self._inode(path).cached)

    def identity(self, path: Path) -> tuple[int, int]:
        return self._inode(path).number, 0

    def read(self, path: Path) -> bytes | None:
        inode = self.names_cached.get(path)
        return None if inode is None else bytes(inode.cached)

    @contextmanager
    def view(self, path: Path) -> Iterator[bytes]:
        yield bytes(self._inode(path).cached)

    def create(self, path: Path) -> "_MemoryFile":
        self._changing()
        self.names_cached[path] = _Inode()
        return _MemoryFile(self, self.names_cached[path])

    def reopen(self, path: Path) -> "_MemoryFile":
        return _MemoryFile(self, self._inode(path))

    def open_in_place(self, path: Path) -> "_MemoryFile":
        self._changing()
        return _MemoryFile(self, self.names_cached.setdefault(path, _Inode()))

    def truncate(self, path: Path, size: int) -> None:
        self._changing()
        inode = self._inode(path)
        del inode.cached[size:]
        inode.durable = bytes(inode.cached)

    def sync_file(self, path: Path) -> None:
        self._changing()
        inode = self._inode(path)
        inode.durable = bytes(inode.cached)

    def sync_folder(self, folder: Path) -> None:
        self._changing()
        for path in [path for path in self.names_durable if folder in path.parents]:
            top = folder / path.relative_to(folder).parts[0]
            if path.parent == folder or not any(top in name.parents for name in self.names_cached):
                del self.names_durable[path]
        for path, inode in self.names_cached.items():
            if path.parent == folder:
                self.names_durable[path] = inode

    def rename(self, old: Path, new: Path) -> None:
        self._changing()
        self.names_cached[new] = self.names_cached.pop(old)

    def link(self, old: Path, new: Path) -> None:
        self._changing()
        self.names_cached[new] = self._inode(old)

    def remove(self, path: Path) -> None:
        self._changing()
        for name in [name for name in self.names_cached if name == path or path in name.parents]:
            del self.names_cached[name]

    def make_folder(self, folder: Path) -> None:
        """Folders are where files are."""

    def _inode(self, path: Path) -> _Inode:
        inode = self.names_cached.get(path)
        if inode is None:
            raise FileNotFoundError(str(path))
        return inode


class _MemoryFile:
    """An open file; after a power cut it leads nowhere."""

    def __init__(self, files: MemoryFiles, inode: _Inode) -> None:
        self._files = files
        self._inode = inode
        files.opened.add(self)

    def append(self, data: bytes) -> None:
        try:
            self._files._changing()
        except BaseException:
            # A torn write: the first half has reached the cache.
            self._inode.cached += data[: len(data) // 2]
            raise
        self._inode.cached += data

    def overwrite(self, data: bytes) -> None:
        self._files._changing()
        self._inode.cached[: len(data)] = data

    def sync(self) -> None:
        self._files._changing()
        self._inode.durable = bytes(self._inode.cached)

    def close(self) -> None:
        self._files.opened.discard(self)
