"""Serves ClientProtocol: admit, look or plan, log and apply, wait until durable, answer.

Planning is pure and refuses before anything changes; the edits of a plan are numbered, buffered
and applied in one turn of the event loop, so that the order in memory is the order in the log.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from secrets import token_bytes
from typing import Any

import structlog
from google.protobuf.message import Message

from ha.record import dataclass, field
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL, RETRIABLE, UNSUPPORTED_OPERATION
from ha.rpc.protocol import Call, Ended, Method, RpcProtocol
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import datanode_protocol_pb2 as datanodes
from hadoop.proto.hdfs_types_pb2 import HAServiceStateProto
from journal.model import LAYOUT_VERSION, TxId
from namenode_sim.client_audit import Watch, unwatched
from namenode_sim.client_protocol import table
from namenode_sim.client_protocol.open_files.block_recovery import commit_block_synchronization
from namenode_sim.client_protocol.open_files.lease_calls import due_files, release_due
from namenode_sim.client_protocol.reads import summary
from namenode_sim.client_protocol.safe_mode import SafeModeAt
from namenode_sim.client_protocol.tree import snapshot_diffs
from namenode_sim.client_protocol.words import model
from namenode_sim.client_protocol.words.errors import FsError, not_found
from namenode_sim.client_protocol.words.leases import LeaseTimes
from namenode_sim.client_protocol.words.permissions import check_superuser, find
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import RpcIds
from namenode_sim.namespace.inode import INode
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.retry_cache import Remembered, RememberedRefusal, RetryCache, Unchanged
from namenode_sim.process.admin_service import AdminService, Save
from namenode_sim.process.answers import Answers, EditLog, Gate, Looks
from namenode_sim.process.balancer_service import BalancerService
from namenode_sim.process.user_groups import Groups, SystemGroups

log = structlog.get_logger()

LOOK_SECONDS = 0.025
"""The default of dfs.namenode.max-lock-hold-to-release-lease-ms."""

MAX_UNCHANGED = 20_000
"""How many answers to calls that changed nothing are kept, for ten minutes at most."""

MOST_REMEMBERED_CHARACTERS = 400
"""Of a refusal: paths in it may be long."""

SUPERGROUP = "supergroup"
"""The default of dfs.permissions.superusergroup."""


def _state_unknown() -> str:
    return "active"


def _no_log_to_roll() -> TxId:
    raise RemoteFault(UNSUPPORTED_OPERATION, "rollEdits is not served by this NameNode")


async def _no_image_to_save(_window_seconds: int, _most_edits: int) -> bool:
    raise RemoteFault(UNSUPPORTED_OPERATION, "saveNamespace is not served by this NameNode")


def _ignore_failure(_why: str) -> None:
    return


@dataclass(slots=True)
class ClientService:
    """The calls of one NameNode's clients.

    ``superuser`` owns the file system.  ``state`` names the HA state for getHAServiceState.
    ``on_broken`` is called with the reason when an edit was logged that does not apply: the process
    must end.  ``roll`` ends the open segment if it holds anything; it gives the first txid of the
    open one; ``save`` saves an image; edits are in ``layout``.  ``host`` is ours, as a refusal in
    safe mode names it. Both clocks return seconds; ``wall_clock`` since 1970.
    """

    namespace: Namespace
    log: EditLog
    gate: Gate
    superuser: str
    cluster: Cluster
    supergroup: str = SUPERGROUP
    settings: model.Settings = model.DEFAULT_SETTINGS
    groups: Groups = field(default_factory=SystemGroups)
    state: Callable[[], str] = _state_unknown
    on_broken: Callable[[str], None] = _ignore_failure
    roll: Callable[[], TxId] = _no_log_to_roll
    save: Save = _no_image_to_save
    upgrade_pending: Callable[[], bool] = bool
    refresh_nodes: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)
    watch: Watch = unwatched
    layout: int = LAYOUT_VERSION
    leases: LeaseTimes = field(default_factory=LeaseTimes)
    host: str = "localhost"
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    _answers: Answers = field(init=False)
    _unchanged: RetryCache = field(default_factory=partial(RetryCache, max_entries=MAX_UNCHANGED))

    def __post_init__(self) -> None:
        self._answers = Answers(self.log, self.namespace)

    def protocol(self, proto: str = "rpc") -> RpcProtocol:
        methods = {
            name: self._serve(name, partial(self._read, name), writes=False) for name in table.READS
        }
        methods |= {
            name: self._serve(
                name, partial(self._write, name, write), writes=not write.checked_as_read
            )
            for name, write in table.WRITES.items()
        }
        others: dict[str, Callable[[Call, Any], Awaitable[Message]]] = {
            **self.admin().methods(),
            "setBalancerBandwidth": BalancerService(self.admin()).set_bandwidth,
            "getContentSummary": self._content_summary,
            "getQuotaUsage": self._quota_usage,
            "getHAServiceState": self._ha_state,
            "getSnapshotDiffReport": partial(self._in_steps, snapshot_diffs.report),
            "getSnapshotDiffReportListing": partial(self._in_steps, snapshot_diffs.listing),
        }
        methods |= {name: Method(table.request_of(name), call) for name, call in others.items()}
        looks = Looks(self.log, self.gate, self.groups, self.scene, self._safe_mode)
        return self.watch(RpcProtocol(CLIENT_PROTOCOL, looks.added(methods)), proto)

    def admin(self) -> AdminService:
        return AdminService(
            scene=self.scene,
            admit=self._admit,
            answers=self._answers,
            durable=lambda: self.log.durable(self.namespace.last_applied),
            cluster=self.cluster,
            safe_mode=self._safe_mode,
            roll=self.roll,
            refresh=lambda: self.refresh_nodes(),
            save=self.save,
            upgrade_pending=lambda: self.upgrade_pending(),
        )

    def became_active(self) -> None:
        """Begin a term: every writer counts as just heard of (as FSNamesystem does at takeover).

        Without this a writer that renewed its lease with the former active would look silent.
        """
        self.leases.forget_all()

    def scene(self, call: Call, *, changes: bool = False) -> model.Scene:
        """Return what planning this call may look at."""
        groups = self.groups.known(call.user)
        is_super = call.user == self.superuser or self.supergroup in groups
        exempt = is_super or not self.settings.permissions_enabled
        rpc = RpcIds(call.client_id, call.call_id)
        caller = model.Caller(
            call.user, groups, is_super, exempt, call.host, rpc, call.real_user or "", call.proof
        )
        now = self.clock()
        self.namespace.retry_cache.advance(now)
        return model.Scene(
            self.namespace,
            caller,
            int(self.wall_clock() * 1000),
            now,
            self.leases,
            self.cluster,
            self.settings,
            self.layout,
            changes,
            token_bytes,
        )

    async def check_superuser(self, call: Call) -> None:
        """Let a superuser pass, in every role; raise RemoteFault for others."""
        await self.groups.learn(call.user)
        try:
            check_superuser(self.scene(call).caller)
        except FsError as error:
            raise RemoteFault(error.java_class, error.message) from error

    async def _admit(self, call: Call, method: str, *, writes: bool, guarded: bool = True) -> None:
        """Let a call in, with what planning it needs and what may take a while to find out."""
        await self.groups.learn(call.user)
        if guarded:
            await self.gate.admit(method, writes=writes)

    def _serve(
        self,
        name: str,
        compute: Callable[[Call, Message], Message],
        *,
        writes: bool,
    ) -> Method:
        """Return a method that is computed in one turn of the loop, once the call is let in."""

        async def handle(call: Call, request: Message) -> Message:
            await self._admit(call, name, writes=writes)
            return await self._answers.answer(lambda: compute(call, request))

        def begin(call: Call, request: Message, ended: Ended) -> bool:
            if not (self.gate.is_open() and self.groups.has_learnt(call.user)):
                return False
            self._answers.begin(lambda: compute(call, request), ended)
            return True

        return Method(table.request_of(name), handle, begin)

    def _read(self, name: str, call: Call, request: Message) -> Message:
        scene, quick = self.scene(call), table.QUICK.get(name)
        found = None if quick is None else quick.write(scene, request)
        if quick is None or found is None:
            return table.READS[name](scene, request)
        return quick.answer.FromString(found)

    def _write(self, name: str, write: table.WriteCall, call: Call, request: Message) -> Message:
        """Carry out a call once: a repetition gets the first one's answer, perhaps not yet there.

        The cache is filled as the edit is applied, so a duplicate that arrives while the first
        waits for the journal finds it, and waits with it.
        """
        scene = self.scene(call, changes=not write.checked_as_read)
        if write.repeated is not None:
            before = self._before(scene)
            if isinstance(before, Unchanged):
                return before.answer
            if isinstance(before, RememberedRefusal):
                raise FsError(before.java_class, before.message)
            if before is not None:
                return write.repeated(scene, request)
        safe_mode = self._safe_mode()
        if not write.checked_as_read:
            safe_mode.check_edit(name, request)
            if write.repeated is None:
                return self._carry_out(write.plan(scene, request))
            return self._carry_out_once(write, scene, request)
        plan = write.plan(scene, request)
        answer = plan.answer() if self.cluster.safe_mode.is_on() else self._carry_out(plan)
        safe_mode.check_located(answer, getattr(request, "src", ""))
        return answer

    def _carry_out_once(
        self, write: table.WriteCall, scene: model.Scene, request: Message
    ) -> Message:
        """Carry out a call, and remember the answer where no edit records it.

        The bad schedule: an attempt is late on its way, and the client repeats it and gets the
        answer that there is nothing to delete or move.  Somebody makes it; the late one deletes or
        moves it.
        """
        rpc = scene.caller.rpc
        try:
            plan = write.plan(scene, request)
        except FsError as refusal:
            if refusal.java_class != RETRIABLE:  # that one asks for the very call again
                said = refusal.message[:MOST_REMEMBERED_CHARACTERS]
                self._unchanged.remember(rpc, RememberedRefusal(refusal.java_class, said))
            raise
        answer = self._carry_out(plan)
        if not plan.ops:
            self._unchanged.remember(rpc, Unchanged(answer))
        return answer

    def _before(self, scene: model.Scene) -> Remembered | None:
        """Return the earlier answer to this very call, or None."""
        rpc = scene.caller.rpc
        self._unchanged.advance(scene.now)
        return self.namespace.retry_cache.find(rpc) or self._unchanged.find(rpc)

    def _carry_out(self, plan: model.EditPlan) -> Message:
        self.log_and_apply(plan.ops)
        return plan.answer()

    def _safe_mode(self) -> SafeModeAt:
        return SafeModeAt(self.cluster, self.host, self.clock())

    def log_and_apply(self, ops: Sequence[Op]) -> None:
        """Log and apply edits in one turn of the loop: number, buffer, apply.

        An edit that is logged but does not apply means that planning and applying disagree: what
        the log says is then not what this process has, and it must not go on.
        """
        for op in ops:
            txid = self.log.append(op)
            try:
                self.namespace.apply(txid, op)
            except Exception as error:
                # Not ApplyError only: whatever stopped it half-way, memory is not the log's now.
                log.critical("namespace.broken", txid=txid, op=type(op).__name__, why=repr(error))
                self.on_broken(str(error) or repr(error))
                raise

    async def _content_summary(
        self, call: Call, request: calls.GetContentSummaryRequestProto
    ) -> Message:
        await self._admit(call, "getContentSummary", writes=False)
        node, counts = await self._count(call, request.path, "File")
        return calls.GetContentSummaryResponseProto(summary=summary.content_summary(node, counts))

    async def _quota_usage(self, call: Call, request: calls.GetQuotaUsageRequestProto) -> Message:
        await self._admit(call, "getQuotaUsage", writes=False)
        node, counts = await self._count(call, request.path, "File/Directory")
        return calls.GetQuotaUsageResponseProto(usage=summary.quota_usage(node, counts))

    async def _in_steps(self, work: table.StepsOfAnswer, call: Call, request: Message) -> Message:
        """Compute an answer that may take long, letting other calls in between."""
        await self._admit(call, call.method, writes=False)
        steps = work(self.scene(call), request)
        try:
            while True:
                next(steps)
                await asyncio.sleep(0)
        except StopIteration as done:
            await self.log.confirmed(self.namespace.last_applied)
            answer: Message = done.value
            return answer
        except FsError as error:
            await self.log.confirmed(self.namespace.last_applied)
            raise RemoteFault(error.java_class, error.message) from error

    async def _count(self, call: Call, path: str, kind: str) -> tuple[INode, summary.ContentCounts]:
        """Count a subtree, letting other calls in between (as Hadoop yields its lock)."""
        counts = summary.ContentCounts()
        try:
            scene = self.scene(call)
            route = find(scene, path)
            node = route.last
            if node is None:
                raise not_found(f"{kind} does not exist: {path}")
            for _ in summary.counting(scene.caller, route.sight or node, counts):
                await asyncio.sleep(0)
        except FsError as error:
            await self.log.confirmed(self.namespace.last_applied)
            raise RemoteFault(error.java_class, error.message) from error
        await self.log.confirmed(self.namespace.last_applied)
        return node, counts

    async def _ha_state(self, _: Call, __: calls.HAServiceStateRequestProto) -> Message:
        name = self.state().upper()
        known = name if name in HAServiceStateProto.keys() else "INITIALIZING"  # noqa: SIM118 - an enum, no dict
        return calls.HAServiceStateResponseProto(state=HAServiceStateProto.Value(known))

    async def commit_block_synchronization(
        self, call: Call, request: datanodes.CommitBlockSynchronizationRequestProto
    ) -> Message:
        await self._admit(call, "commitBlockSynchronization", writes=True)

        def compute() -> Message:
            self._safe_mode().check("Cannot commitBlockSynchronization while in safe mode")
            return self._carry_out(commit_block_synchronization(self.scene(call), request))

        return await self._answers.answer(compute)

    async def release_expired_leases(self) -> int:
        """Take the files of writers silent for longer than the hard limit.

        To be called on the active every few seconds (LeaseManager.Monitor); returns how many
        files were closed, or had the recovery of their last block ordered.  A look that takes long
        ends early, and the next one goes on.
        """
        if self.cluster.safe_mode.is_on():
            return 0
        began, released = self.clock(), 0
        for file_id in due_files(self.scene(_NOBODY)):
            released += self._release(file_id)
            if self.clock() - began > LOOK_SECONDS:
                break
        self.leases.keep_only(set(self.namespace.tree.leases))
        await self.log.durable(self.namespace.last_applied)
        return released

    def _release(self, file_id: int) -> bool:
        try:
            step = release_due(self.scene(_NOBODY), file_id)
        except FsError as error:
            log.debug("lease.not_released", file_id=file_id, why=error.message)
            return False
        if step is None:
            return False
        self.log_and_apply(step.ops)
        step.then()
        log.info("lease.released", file_id=file_id, closed=step.closed)
        return bool(step.ops)


_NOBODY = Call(CLIENT_PROTOCOL, "", b"", -2, -1, "", None, "")
