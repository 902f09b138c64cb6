"""A machine with a disk, and on it one JournalNode: the product's own, from service to files."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final, cast

import grpc
from aiohttp import web

from journal.core.effects import FormatStorage
from journal.errors import StorageFailed
from journal.model import JournalId, NamespaceInfo, Segment, TxId
from journal.node.faces import transfer
from journal.node.faces.grpc_face import JournalService
from journal.node.node import JournalNode, _Open
from journal.node.owner.edits_cache import EditsCache
from journal.node.owner.owner import JournalOwner
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2_grpc
from journal.storage.disk import Disk
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import PowerCut, Violated
from tests.simulation.journal import grpc_seam
from tests.simulation.journal.haste import Haste
from tests.simulation.journal.http_seam import Page
from tests.simulation.journal.lane_seam import LaneEnd, NodeLanes
from tests.simulation.journal.lane_seam import Respond as LaneRespond
from tests.simulation.journal.platter import Blow, Platter, SimulatedFiles
from tests.simulation.journal.swarm import Upkeep

JOURNAL: Final = JournalId("ns1")
NAMESPACE: Final = NamespaceInfo(-65, 12345, "simulated", 0, "bp")
RPC_PORT: Final = 8485
HTTP_PORT: Final = 8480
MAX_LEASE_SECONDS: Final = 2.0
CLAIM_SECONDS: Final = 1.2
"""Longer than a writer of these worlds, which waits a second for each answer, claims its epoch."""


class Machine:
    """Boots, kills and restarts its JournalNode; serves what the network delivers."""

    def __init__(self, name: str, loop: VirtualLoop, faults: Faults, trace: Trace) -> None:
        self.name = name
        self.platter = Platter(int(name.strip("jnw") or 0))
        self.root = Path(f"/{name}/{JOURNAL}")
        self.process: Process | None = None
        self.owner: JournalOwner | None = None
        self.disk_was_hurt = False
        self.silent = False
        self.cache_bytes = 1000
        self.upkeep = Upkeep()
        self.peers: Sequence[str] = ()
        self.booted: Callable[[], None] = lambda: None
        self._loop = loop
        self._faults = faults
        self._trace = trace
        self._rng = faults.random("machine", name)
        self._ids = faults.random("incarnations", name)
        self._lane_keys = faults.random("lane keys", name)
        self.takes_lanes = False
        self._methods: dict[str, grpc_seam.Handler] = {}
        self._node: JournalNode | None = None

    def format(self, *, founding: bool = True) -> None:
        files = SimulatedFiles(self.platter, lambda: True, self._rng)
        disk = Disk(self.root, files, fresh_id=self.fresh_id)
        disk.load()
        disk.run((FormatStorage(NAMESPACE, self.fresh_id(), founding),))

    def fresh_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    @property
    def up(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def promised(self) -> int:
        """What the running node says it has promised."""
        return 0 if self.owner is None else self.owner.state.promised

    def boot(self) -> None:
        process = self.process = Process(self.name, self._loop)
        self.silent = False
        process.context.run(self._boot, process)

    def _boot(self, process: Process) -> None:
        files = SimulatedFiles(self.platter, lambda: process.alive, self._rng)
        disk = Disk(self.root, files, fresh_id=self.fresh_id)
        try:
            state = disk.load()
        except PowerCut:
            return
        except StorageFailed as failure:
            if not self.disk_was_hurt:
                raise Violated("I15", f"{self.name} cannot load its journal: {failure}") from None
            self.kill("cannot load its journal")
            return
        node = JournalNode(self._settings())
        node.http_port = HTTP_PORT
        node.lanes = NodeLanes(self._lane_keys) if self.takes_lanes else None
        patience = cast(Any, Haste(self._faults.random("haste")))
        self.owner = JournalOwner(
            JOURNAL,
            disk,
            state,
            EditsCache(self.cache_bytes),
            patience,
            max_read_lease_seconds=MAX_LEASE_SECONDS,
            clock=self._loop.time,
        )
        node._journals[JOURNAL] = _Open(self.owner, cast(Any, None), self.root)
        self._node = node
        journal_pb2_grpc.add_JournalNodeServicer_to_server(  # type: ignore[no-untyped-call]
            JournalService(node), self
        )
        self._trace.add(self.name, f"up: promised {state.promised}, last {state.last_written}")
        if self.upkeep.sync_seconds or self.upkeep.scrub_seconds:
            node.begin_upkeep(cast(Any, _Others(self.name)))
        self.booted()

    def _settings(self) -> NodeSettings:
        peers = [(name, RPC_PORT) for name in self.peers] if self.upkeep.sync_seconds else []
        return NodeSettings(
            folder=self.root.parent,
            fetch_stall_seconds=2.0,
            peers={JOURNAL: peers},
            sync_interval_seconds=self.upkeep.sync_seconds or 120.0,
            sync_quick_seconds=0.5,
            sync_call_seconds=1.0,
            sync_stall_seconds=2.0,
            claim_seconds=CLAIM_SECONDS,
            max_read_lease_seconds=MAX_LEASE_SECONDS,
            admission_seconds=0.25,
            scrub_interval_seconds=self.upkeep.scrub_seconds,
        )

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Do nothing: grpc's server has another way to take handlers, which is enough."""

    def add_registered_method_handlers(
        self, _service: str, methods: dict[str, grpc_seam.Handler]
    ) -> None:
        self._methods = methods

    # ---- faults ----

    def kill(self, why: str, fault: str = "") -> None:
        """End the process; the page cache survives."""
        if self.process is not None and self.process.alive:
            self._trace.add(self.name, f"killed: {why}", fault)
            self.process.kill()

    def cut_power(self, why: str, fault: str = "") -> None:
        """End the machine; what was not synced may be gone."""
        self._trace.add(self.name, f"power lost: {why}", fault)
        self.silent = True
        if self.process is not None:
            self.process.kill()
        self.platter.cut_power(self._rng)

    def strike(self, after: int, kind: str, fault: str) -> None:
        def happen() -> None:
            if not self._faults.allowed(fault):
                return
            match kind:
                case "kill":
                    self.kill("at a disk operation", fault)
                case "power":
                    self.cut_power("at a disk operation", fault)
                case _:
                    self.disk_was_hurt = True
                    self._trace.add(self.name, f"disk fails: {kind}", fault)

        self.platter.blows.append(Blow(self.platter.operations + after, kind, happen))

    # ---- what the network delivers ----

    def unary(self, method: str, request: bytes, respond: grpc_seam.Respond) -> None:
        process = self._ready(respond)
        if process is None:
            return
        handler = self._methods[method]

        async def serve() -> None:
            reply = await handler.unary_unary(
                handler.request_deserializer(request), grpc_seam.Context()
            )
            respond(handler.response_serializer(reply))

        process.spawn(self._guarded(serve, respond))

    def open_stream(self, method: str, respond: grpc_seam.Respond) -> "_Stream":
        process = self._ready(respond)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        if process is None:
            return _Stream(queue, None)
        work = partial(grpc_seam.serve_stream, self._methods[method], queue, respond)
        return _Stream(queue, process.spawn(self._guarded(work, respond)))

    def lane_end(self, respond: LaneRespond) -> LaneEnd | None:
        process, node = self.process, self._node
        if process is None or not process.alive or node is None:
            return None

        async def until_killed() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self.silent and not self._faults.over:
                    respond(None)
                raise

        process.spawn(until_killed())
        return LaneEnd(node, process, self._loop, respond)

    def get(self, query: dict[str, str], respond: Callable[[Page | None], None]) -> None:
        """Serve a segment over HTTP."""
        if self.process is None or not self.process.alive:
            respond(None)
            return
        node = self._node
        assert node is not None

        async def serve() -> None:
            owner = node.find(query["jid"])
            assert owner is not None
            transfer._check_storage_info(owner.state, query.get("storageInfo"))
            segment, file, end = await transfer._open_segment(
                owner,
                TxId(int(query["segmentTxId"])),
                in_progress_ok=query.get("inProgressOk") != "false",
            )
            check, body = transfer.check_of(owner.state, segment), file.read(end)
            try:
                if check is not None:
                    check.feed(body)
                    check.finish()
            except ValueError as damage:
                await transfer.report_served(owner, segment, str(damage))
                respond(None)
                return
            respond(Page(200, "OK", body))

        async def guarded() -> None:
            try:
                await serve()
            except web.HTTPException as refusal:
                respond(Page(refusal.status, refusal.text or refusal.reason))
            except StorageFailed as failure:
                respond(Page(500, str(failure)))
            except (PowerCut, asyncio.CancelledError):
                respond(None)

        self.process.spawn(guarded())

    def _ready(self, respond: grpc_seam.Respond) -> Process | None:
        if self.process is not None and self.process.alive:
            return self.process
        if not self.silent:
            respond(grpc_seam.REFUSED)
        return None

    async def _guarded(
        self, work: Callable[[], Awaitable[None]], respond: grpc_seam.Respond
    ) -> None:
        try:
            await work()
        except grpc_seam.Aborted as aborted:
            respond(aborted.failure)
        except (PowerCut, asyncio.CancelledError):
            if not self.silent:
                respond(grpc_seam.RESET)
        except Exception as bug:
            self._trace.add(self.name, f"!handler failed: {bug!r}")
            respond(grpc_seam.Failure(grpc.StatusCode.UNKNOWN, f"Unexpected {bug!r}"))
            raise


@dataclass(frozen=True, slots=True)
class _Others:
    """In place of a look at this machine's own addresses: names are machines here."""

    name: str

    def others(self, nodes: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple(node for node in nodes if node[0] != self.name)


class _Stream:
    """The server's end of one stream."""

    def __init__(self, queue: "asyncio.Queue[bytes]", task: "asyncio.Task[Any] | None") -> None:
        self._queue = queue
        self._task = task

    def feed(self, request: bytes) -> None:
        self._queue.put_nowait(request)

    def cut(self) -> None:
        if self._task is not None:
            self._task.cancel()


def open_simulated(owner: JournalOwner, segment: Segment) -> tuple[BytesIO, int]:
    """Replace the one function that opens a segment file for the HTTP server."""
    extent = owner.disk.extent(segment)
    data = owner.disk._files.read(extent.path)
    if data is None:
        raise FileNotFoundError(str(extent.path))
    return BytesIO(data), extent.end
