"""When the active may answer: once what an answer has seen is certain.

Every answer, also of a read and also a refusal, waits until the last applied edit is durable: no
client ever learns of an edit that could still vanish.  What changes nothing also takes the read
lease, so that a superseded active never answers from the past.  See
docs/reference/namenode.md#certain-answers.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from google.protobuf.message import Message

from ha.record import dataclass
from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.packets import parse_request
from ha.rpc.protocol import Call, Ended, Method
from hadoop.proto import client_namenode_pb2 as calls
from journal.model import TxId
from namenode_sim.client_protocol import table
from namenode_sim.client_protocol.safe_mode import SafeModeAt
from namenode_sim.client_protocol.words import block_locations
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.user_groups import Groups

_LOCATIONS: Final = "getBlockLocations"


class EditLog(Protocol):
    """Where edits become durable."""

    def append(self, op: Op) -> TxId: ...

    async def durable(self, txid: TxId) -> None: ...

    def when_durable(self, txid: TxId, done: Callable[[], None]) -> None: ...

    def is_durable(self, txid: TxId) -> bool:
        """Return whether ``durable`` has nothing to wait for."""

    async def confirmed(self, txid: TxId) -> None: ...

    def is_confirmed(self) -> bool: ...


class Gate(Protocol):
    """Lets a call in, or raises RemoteFault (StandbyException)."""

    def is_open(self) -> bool: ...

    async def admit(self, method: str, *, writes: bool) -> None: ...


class Answers:
    """Answers of one NameNode; most need no task, for the log calls back."""

    def __init__(self, log: EditLog, namespace: Namespace) -> None:
        self._log = log
        self._namespace = namespace
        self._waiting: set[asyncio.Task[None]] = set()

    def begin(self, compute: Callable[[], Message], ended: Ended) -> None:
        """Compute in this turn, and call ``ended`` once the answer may be given.

        An edit of this very call proves by its quorum that we were the active after the call came.
        Anything else was only seen, and takes the read lease.

        Raises:
            Exception: what ``compute`` raises but FsError; ``ended`` is not called then.
        """
        before = self._namespace.last_applied
        outcome: Message | Exception
        try:
            outcome = compute()
        except FsError as error:
            outcome = RemoteFault(error.java_class, error.message)
        seen = self._namespace.last_applied
        if seen > before and isinstance(outcome, Message):
            self._log.when_durable(seen, partial(ended, outcome))
        else:
            self._log.when_durable(seen, partial(self._confirm, seen, outcome, ended))

    async def answer(self, compute: Callable[[], Message]) -> Message:
        """Compute in this turn, and return or raise the outcome once it may be given."""
        done: asyncio.Future[Message | Exception] = asyncio.get_running_loop().create_future()

        def ended(outcome: Message | Exception) -> None:
            if not done.done():
                done.set_result(outcome)

        self.begin(compute, ended)
        outcome = await done
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _confirm(self, seen: TxId, outcome: Message | Exception, ended: Ended) -> None:
        if self._log.is_confirmed():
            ended(outcome)
            return
        task = asyncio.create_task(self._confirm_later(seen, outcome, ended), name="read lease")
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _confirm_later(self, seen: TxId, outcome: Message | Exception, ended: Ended) -> None:
        try:
            await self._log.confirmed(seen)
        except RemoteFault as fault:
            outcome = fault
        ended(outcome)


@dataclass(frozen=True, slots=True)
class Looks:
    """Reads of one NameNode that are answered in the turn of the loop that read them.

    Most have nothing to wait for, and need nothing of what a call that waits must keep.  See
    docs/reference/namenode.md#looks.
    """

    log: EditLog
    gate: Gate
    groups: Groups
    scene: Callable[[Call], Scene]
    safe_mode: Callable[[], SafeModeAt]

    def added(self, methods: Mapping[str, Method]) -> dict[str, Method]:
        """Return the methods, those that read with ``look``."""
        reads: dict[str, Callable[[Scene, Any], bytes | None]] = {
            **{name: partial(_answer_bytes, name) for name in table.READS},
            _LOCATIONS: self._locations,
        }
        return {
            name: replace(method, look=partial(self._look, method.request, reads[name]))
            if name in reads
            else method
            for name, method in methods.items()
        }

    def _look(
        self,
        request: type[Message],
        read: Callable[[Scene, Any], bytes | None],
        call: Call,
        data: bytes,
    ) -> bytes | None:
        """Return the answer, which may be given now; None where the call goes the usual way."""
        if not (self.gate.is_open() and self.groups.has_learnt(call.user)):
            return None
        scene = self.scene(call)
        if not self.log.is_durable(scene.namespace.last_applied):
            return None
        try:
            found = read(scene, parse_request(request, data))
        except (FsError, RemoteFault, MalformedFrame):
            return None  # the usual way finds it again, and answers
        # The lease is looked at after the answer was computed: then it was the truth.
        return found if self.log.is_confirmed() else None

    def _locations(
        self, scene: Scene, request: calls.GetBlockLocationsRequestProto
    ) -> bytes | None:
        moved, found = block_locations.located(scene, request)
        if moved:  # the access time
            return None
        if scene.cluster.safe_mode.is_on():
            answer = calls.GetBlockLocationsResponseProto.FromString(found)
            self.safe_mode().check_located(answer, request.src)
        return found


def _answer_bytes(name: str, scene: Scene, request: Any) -> bytes:  # noqa: ANN401 - of protobuf
    quick = table.QUICK.get(name)
    found = None if quick is None else quick.write(scene, request)
    return table.READS[name](scene, request).SerializeToString() if found is None else found
