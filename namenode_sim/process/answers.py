"""When the active may answer: once what an answer has seen is certain.

Every answer, also of a read and also a refusal, waits until the last applied edit is durable: no
client ever learns of an edit that could still vanish.  What changes nothing also takes the read
lease, so that a superseded active never answers from the past.  See
docs/reference/namenode.md#certain-answers.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.protocol import Ended
from journal.model import TxId
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.namespace import Namespace


class EditLog(Protocol):
    """Where edits become durable."""

    def append(self, op: Op) -> TxId: ...

    async def durable(self, txid: TxId) -> None: ...

    def when_durable(self, txid: TxId, done: Callable[[], None]) -> None: ...

    async def confirmed(self, txid: TxId) -> None: ...

    def is_confirmed(self) -> bool: ...


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
