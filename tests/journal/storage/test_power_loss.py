"""A real JournalNode process on real files, and the power cut after each of its operations.

A shim records what the process writes, names and syncs.  The record is replayed up to every
operation, what no sync covers is dropped, and the journal is loaded from what remains.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import grpc
import pytest
import structlog

from journal.core import requests
from journal.core.state import JournalState
from journal.messages import namespace_message, segment_message
from journal.model import Epoch, Segment
from journal.proto import journal_pb2 as pb
from journal.proto import journal_pb2_grpc
from tests import ROOT
from tests.journal.core.requests_of import LocalJournal, Writer
from tests.journal.node.test_process import configuration, free_port
from tests.journal.storage.power_replay import Cut, Replay, operations
from tests.journal.storage.test_crashes import STATES, check, life
from tests.journal.storage.test_crashes import _goes_on as goes_on
from tests.needs import GCC

JID = "ns1"
SHIM = Path(__file__).with_name("power_shim.c")
DEADLINE_SECONDS = 20.0
pytestmark = GCC.mark  # for the shim that records file operations

PLANTS = {
    "folders are not synced": "RealFiles.sync_folder = lambda self, folder: None",
    "edits are not synced": "files._RealFile.sync = lambda self: None",
    "nothing is": "files.os.fsync = files.os.fdatasync = lambda fd: None",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """The operations of a life, and how many there were when each act was answered."""

    root: Path
    operations: list[list[str]]
    answered_at: list[int]


def lived(program: str, shim: Path, root: Path, log: Path, marks: Path) -> Recorded:
    """Let a process carry out a program under the shim; it writes its marks itself."""
    shimmed = {"LD_PRELOAD": str(shim), "NNHA_SHIM_ROOT": str(root), "NNHA_SHIM_LOG": str(log)}
    subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, **shimmed},
        check=True, timeout=60, capture_output=True,
    )  # fmt: skip
    return Recorded(root, operations(log), [int(mark) for mark in marks.read_text().split()])


class RemoteJournal:
    """LocalJournal's two doors, on a node process."""

    def __init__(self, stub: journal_pb2_grpc.JournalNodeStub, log: Path) -> None:
        self._stub = stub
        self._log = log
        self._promised = 0

    @property
    def state(self) -> JournalState:
        """As far as this end knows: what was promised."""
        return JournalState(promised=Epoch(self._promised))

    def ask(self, request: requests.Request) -> None:
        info = self._info(request.stamp) if hasattr(request, "stamp") else None
        match request:
            case requests.Format(namespace, force=force):
                self._call("Format", pb.FormatRequest(
                    journal_id=JID, namespace_info=namespace_message(namespace), force=force,
                    founding=True, seen_promised_epoch=request.seen_promised,
                    seen_namespace_id=request.seen_namespace_id,
                ))  # fmt: skip
            case requests.NewEpoch(namespace, epoch):
                self._promised = epoch
                self._call("NewEpoch", pb.NewEpochRequest(
                    journal_id=JID, namespace_info=namespace_message(namespace), epoch=epoch
                ))  # fmt: skip
            case requests.StartLogSegment(_, first, layout):
                self._call("StartLogSegment", pb.StartLogSegmentRequest(
                    info=info, first_txid=first, layout_version=layout
                ))  # fmt: skip
            case requests.Journal(_, segment_first, first, count, records):
                batch = pb.Batch(segment_first_txid=segment_first, first_txid=first, count=count,
                                 records=records)  # fmt: skip
                (reply,) = self._stub.Write(iter([pb.WriteRequest(info=info, batch=batch)]))
                assert not reply.HasField("refusal"), reply
            case requests.FinalizeLogSegment(_, first, last, digest):
                self._call("FinalizeLogSegment", pb.FinalizeLogSegmentRequest(
                    info=info, first_txid=first, last_txid=last, digest=digest or b""
                ))  # fmt: skip
            case _:
                raise TypeError(f"no way to send {request}")

    def accept(self, writer: Writer, decided: Segment, source: bytes) -> None:
        """Have it accept a recovery, from a source that serves these bytes."""
        with serving(source) as url:
            request = requests.AcceptRecovery(writer.stamp(), decided)
            self._call("AcceptRecovery", pb.AcceptRecoveryRequest(
                info=self._info(request.stamp), segment=segment_message(decided),
                source_urls=[url],
            ))  # fmt: skip

    def operations_so_far(self) -> int:
        """Return how many operations are recorded by now."""
        return self._log.read_bytes().count(b"\n")

    def _info(self, stamp: requests.Stamp) -> pb.RequestInfo:
        self._promised = max(self._promised, stamp.epoch)
        return pb.RequestInfo(journal_id=JID, epoch=stamp.epoch, serial=stamp.serial,
                              committed_txid=stamp.committed)  # fmt: skip

    def _call(self, method: str, request: object) -> None:
        getattr(self._stub, method)(request, timeout=DEADLINE_SECONDS)


@contextmanager
def serving(body: bytes) -> Iterator[str]:
    def answer(self: BaseHTTPRequestHandler) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    quiet = {"do_GET": answer, "log_message": lambda self, *told: None}
    handler = type("Handler", (BaseHTTPRequestHandler,), quiet)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/getJournal"
        finally:
            server.shutdown()
            thread.join()


def built_shim(folder: Path) -> Path:
    shim = folder / "shim.so"
    compiler = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(shim), str(SHIM), "-ldl", "-lpthread"]
    subprocess.run(compiler, check=True, capture_output=True)
    return shim


def record(folder: Path, plant: str = "pass") -> Recorded:
    """Let a node process live the life of test_jn_crashes under the shim."""
    shim, log, root = built_shim(folder), folder / "log", folder / "jn"
    root.mkdir()
    port = free_port()
    conf = configuration(folder / "conf", edits_dir=root, rpc_address=f"127.0.0.1:{port}",
                         http_address="127.0.0.1:0")  # fmt: skip
    program = (
        "from journal.storage import files; from journal.storage.files import RealFiles\n"
        f"{plant}\n"
        f"import sys; sys.argv = ['nnha', 'journalnode', '--conf-dir', {str(conf)!r}]\n"
        "from ha.cli.main import main; main()"
    )
    shimmed = {"LD_PRELOAD": str(shim), "NNHA_SHIM_ROOT": str(root), "NNHA_SHIM_LOG": str(log)}
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, **shimmed},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return _live(port, log, root)
    finally:
        process.kill()
        process.wait()


def _live(port: int, log: Path, root: Path) -> Recorded:
    answered: list[int] = []
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(DEADLINE_SECONDS)
        remote = RemoteJournal(journal_pb2_grpc.JournalNodeStub(channel), log)  # type: ignore[no-untyped-call]
        answered.append(remote.operations_so_far())
        for act in life():
            act(remote)  # type: ignore[arg-type] # it has both doors
            answered.append(remote.operations_so_far())
    return Recorded(root, operations(log), answered)


@dataclass(frozen=True, slots=True)
class Judged:
    """One power cut: the states before and after the act that it may have fallen into."""

    name: str
    replay: Replay
    cut: Cut
    before: JournalState
    after: JournalState

    def judge(self, place: Path) -> None:
        """Load what is left.

        Raises:
            AssertionError: something that was answered is not there.
        """
        self.replay.write_to(place, self.cut, Random(self.name))
        if not (place / JID).is_dir():
            assert self.before.namespace is None, "the journal's folder is gone"
            return
        _same_inode(place / JID / "current/incarnation")
        found = LocalJournal(place / JID)
        try:
            check(self.before, self.after, found)
            goes_on(found)
        finally:
            found.close()


def _same_inode(path: Path) -> None:
    """We write the files anew; on the real disk the one that names its inode would be that one."""
    if not path.exists():
        return
    inode = path.stat().st_ino
    lines = [
        f"inode={inode}" if line.startswith("inode=") else line
        for line in path.read_text(encoding="ascii").splitlines()
        if not line.startswith("generation=")
    ]
    path.write_text("\n".join(lines), encoding="ascii")
    assert path.stat().st_ino == inode


def failures(recorded: Recorded, cuts: tuple[Cut, ...]) -> Iterator[str]:
    """Yield the cuts after which an answer was not kept, or the journal does not load."""
    memory = Path("/dev/shm")
    replay = Replay(recorded.root)
    for point, operation in enumerate(recorded.operations, start=1):
        replay.apply(operation)
        # Of the acts, this one was answered for certain; the next may be under way.
        act = max(0, sum(at <= point for at in recorded.answered_at) - 1)
        before, after = STATES[act], STATES[min(act + 1, len(STATES) - 1)]
        for cut in cuts:
            name = f"{point} of {len(recorded.operations)} ({operation[0]}), {cut}"
            with TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
                try:
                    Judged(name, replay, cut, before, after).judge(Path(place))
                except Exception as failure:  # noqa: BLE001 - whatever breaks is a finding
                    yield f"{name}: {failure!r}"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Log errors only, as a thousand loads would log a thousand lines."""
    config = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.configure(**config)


def test_the_shim_sees_everything(tmp_path: Path) -> None:
    recorded = record(tmp_path)
    replay = Replay(recorded.root)
    for operation in recorded.operations:
        replay.apply(operation)
    real = {
        str(path.relative_to(recorded.root)): path.read_bytes()
        for path in recorded.root.rglob("*")
        if path.is_file()
    }
    seen = dict(replay.tree())
    for lock in [name for name in {*real, *seen} if name.endswith("in_use.lock")]:
        real.pop(lock, None)
        seen.pop(lock, None)
    assert seen == real


@pytest.mark.row("X7")
def test_x7_power_loss_after_any_operation_of_a_real_process(tmp_path: Path) -> None:
    recorded = record(tmp_path)
    assert len(recorded.operations) > 80, "the shim has recorded next to nothing"
    found = list(failures(recorded, tuple(Cut)))
    assert not found, f"{len(found)} cuts: {found[:5]}"


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_a_forgotten_sync_is_found(tmp_path: Path, plant: str) -> None:
    assert next(failures(record(tmp_path, plant), (Cut.NOTHING, Cut.NAMES)), None) is not None
