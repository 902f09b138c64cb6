"""Asks the lock's owner for signs of life, and our NameNode for those of the journal's writer.

While the owner's NameNode answers, it is asked every 0.5 s over one connection.  While neither it
nor its controller answers, our NameNode is asked, too, and asks the JournalNodes.

See docs/reference/zkfc.md#witnessed-takeover.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog
from prometheus_client import Counter

from ha.conf.topology import HostPort, NameNodeAddress
from ha.daemon.own_delay import OwnDelay
from ha.elector.events import Event as ElectorEvent
from ha.elector.events import LockGone, LockSeen
from ha.elector.model import Removal, Role
from ha.elector.state import ElectorState
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, decode
from ha.elector.zookeeper.errors import BadBreadcrumb
from ha.elector.zookeeper.outcome import ZnodeFacts
from ha.health.core import OWN_DELAY_SHARE
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError, ServiceRefused, ServiceUnreachable
from ha.service.journal_witness import ask_writer_silence
from ha.service.model import ServiceState, ServiceStatus, WriterSilence
from ha.service.no_answer import NoAnswer, why_no_answer
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings
from ha.zkfc.witness import core
from ha.zkfc.witness.core import step

log = structlog.get_logger()

CALM_SECONDS: Final = 0.5
"""The time between two rounds while the owner answers."""
LOOK_SECONDS: Final = 0.15
"""The time between the beginnings of two rounds while it does not."""
ASK_SECONDS: Final = 0.15
"""The limit for a connection to the owner and its answer."""
WRITER_SECONDS: Final = 0.3
"""The limit for our NameNode's answer; it gives the JournalNodes less."""
DELAY_STEPS: Final = 5

REMOVALS: Final = Counter(
    "nnha_zkfc_witnessed_removals",
    "Locks of silent owners, by what came of removing them",
    ["node", "result"],
)


class ControllerAccess(Protocol):
    """What the witness asks of its controller."""

    def obstacle(self) -> str:
        """Return why our controller may not take over by itself now; empty if it may."""

    async def read_lock(self) -> tuple[bytes, ZnodeFacts] | None:
        """Return the lock's content and facts; None if there is none or the answer is unknown."""

    async def remove_lock(self, made: int) -> Removal:
        """See ``LockKeeper.remove``."""

    def set_removal_reason(self, because: str) -> None:
        """Record in our next takeover why the lock was removed; empty withdraws the reason."""


class Witness:
    """The witness of one controller; its task owns the state of the core."""

    def __init__(
        self,
        settings: core.WitnessSettings,
        own: NameNodeAddress,
        controller: ControllerAccess,
        *,
        address_of: Callable[[str], NameNodeAddress | None],
        around: Surroundings = REAL_WORLD,
    ) -> None:
        self._own = own
        self._controller = controller
        self._address_of = address_of
        self._around = around
        self._state = core.State(settings=settings)
        self._made = 0
        self._owner: tuple[int, ActiveNodeInfo] | None = None
        self._client: ServiceClient | None = None
        self._node = f"{own.nameservice}.{own.namenode}"
        for removal in Removal:
            REMOVALS.labels(self._node, removal.value)

    @property
    def verdict(self) -> core.SilenceVerdict:
        """The core's last verdict."""
        return self._state.verdict

    @property
    def description(self) -> str:
        """The verdict in words, for /status; empty if the witness is turned off."""
        return self._state.verdict.value if self._state.settings.enabled else ""

    @property
    def removed(self) -> int:
        """The transaction of the lock that we removed last; 0 after a NameNode became active."""
        return self._state.removed

    def observe_step(self, event: ElectorEvent, _before: ElectorState, after: ElectorState) -> None:
        """Learn from a step of the election a peer's lock, and whether we have become active."""
        if isinstance(event, LockSeen) and event.session == after.session:
            self._made = 0 if event.ours else event.made
            if self._made not in (0, self._state.removed):
                self._controller.set_removal_reason("")  # a third controller got the lock
        elif isinstance(event, LockGone) or after.role is not Role.STANDBY:
            self._made = 0
        if after.role is Role.ACTIVE and self._state.removed:
            self._step(core.BecameActive())

    async def run(self) -> None:
        """Do a round after the other until cancelled; return at once if the key is off."""
        if not self._state.settings.enabled:
            return
        try:
            while True:
                try:
                    pause = await self._look()
                except Exception:
                    # A bug in here must cost a witnessed takeover only, never the controller.
                    log.exception("zkfc.witness.crashed", namenode=self._own.namenode)
                    pause = CALM_SECONDS
                await asyncio.sleep(pause)
        finally:
            await self._close_client()

    async def _look(self) -> float:
        """Do one round; return the seconds to wait before the next one."""
        loop = asyncio.get_running_loop()
        began, found = loop.time(), await self._owner_of_lock()
        if found is None:
            self._step(core.NoOwner())
            await self._close_client()
            return CALM_SECONDS
        lock, owner = found
        with OwnDelay(ASK_SECONDS / DELAY_STEPS) as delay:
            answer = await self._ask_owner(owner)
        if answer is core.Answer.SILENT and delay.seconds >= OWN_DELAY_SHARE * ASK_SECONDS:
            answer = core.Answer.UNCLEAR
        for action in self._step(core.OwnerAsked(lock, answer, self._controller.obstacle())):
            match action:
                case core.AskWriter():
                    await self._check_writer(lock)
                case core.RemoveLock():
                    await self._remove(action)
        if answer in (core.Answer.SERVES, core.Answer.ANSWERS):
            return CALM_SECONDS
        return max(0.0, began + LOOK_SECONDS - loop.time())

    async def _check_writer(self, lock: core.Lock) -> None:
        silence = await self._ask_writer()
        still = lock if self._made == lock.made else None
        for action in self._step(core.WriterReported(still, silence, self._controller.obstacle())):
            if isinstance(action, core.RemoveLock):
                await self._remove(action)

    async def _remove(self, action: core.RemoveLock) -> None:
        self._controller.set_removal_reason(action.because)
        outcome = await self._controller.remove_lock(action.lock.made)
        if outcome not in (Removal.REMOVED, Removal.UNKNOWN):
            self._controller.set_removal_reason("")
        REMOVALS.labels(self._node, outcome.value).inc()
        log.warning(
            "zkfc.witness.removal",
            namenode=self._own.namenode,
            owner=action.lock.owner,
            lock=f"{action.lock.made:#x}",
            outcome=outcome.value,
            because=action.because,
        )
        self._step(core.RemovalEnded(outcome))

    def _step(self, event: core.Event) -> tuple[core.AskWriter | core.RemoveLock, ...]:
        before = self._state
        result = step(before, event, now=asyncio.get_running_loop().time())
        self._state = result.state
        if before.verdict is not result.state.verdict:
            log.info(
                "zkfc.witness.step",
                namenode=self._own.namenode,
                saw=repr(event),
                before=before.verdict.name.lower(),
                after=result.state.verdict.name.lower(),
                actions=[repr(action) for action in result.actions],
            )
        return result.actions

    # -- the requests --------------------------------------------------------------------------

    async def _owner_of_lock(self) -> tuple[core.Lock, ActiveNodeInfo] | None:
        """Return a peer's lock and the address in it, if the configuration has that address."""
        made = self._made
        if made == 0:
            self._owner = None
            return None
        if self._owner is None or self._owner[0] != made:
            read = await self._controller.read_lock()
            if read is None or read[1].written_by != made:
                return None
            try:
                info = decode(read[0])
            except BadBreadcrumb:
                return None
            await self._close_client()
            self._owner = made, info
        info = self._owner[1]
        known = self._address_of(info.namenode)
        at = HostPort(info.hostname, info.port)
        if known is None or info.namenode == self._own.namenode or known.service != at:
            return None  # nothing listens at an outdated address, and that proves nothing
        return core.Lock(made, info.namenode), info

    async def _ask_owner(self, owner: ActiveNodeInfo) -> core.Answer:
        client = self._client
        if client is not None:
            answer = await _classify_answer(client.status(deadline_seconds=ASK_SECONDS))
            if answer in (core.Answer.SERVES, core.Answer.ANSWERS):
                return answer
            # Perhaps only the connection is broken.  A live process accepts a new one.
            await self._close_client()
        namenode = HostPort(owner.hostname, owner.port)
        controller = HostPort(owner.hostname, owner.zkfc_port)
        calm = self._state.suspicion.unanswered == 0
        answers = await asyncio.gather(
            self._ask_anew(namenode, keep=calm), self._ask_controller(controller)
        )
        by_weight = (
            core.Answer.SERVES,
            core.Answer.ANSWERS,
            core.Answer.UNCLEAR,
            core.Answer.SILENT,
        )
        return min(answers, key=by_weight.index)

    async def _ask_anew(self, address: HostPort, *, keep: bool) -> core.Answer:
        """Ask a NameNode over a new connection."""

        async def ask() -> ServiceStatus:
            client = await ServiceClient.open(
                address, deadline_seconds=ASK_SECONDS, connect=self._around.connect
            )
            kept = False
            try:
                status = await client.status(deadline_seconds=ASK_SECONDS)
                kept = keep and self._client is None
                if kept:
                    self._client = client
                return status
            finally:
                if not kept:
                    await client.close()

        return await _classify_answer(ask())

    async def _ask_controller(self, address: HostPort) -> core.Answer:
        async def ask() -> None:
            async with ZkfcClient.connected(
                address, deadline_seconds=ASK_SECONDS, connect=self._around.connect
            ) as client:
                await client.say_anything(deadline_seconds=ASK_SECONDS)

        return await _classify_answer(ask())

    async def _ask_writer(self) -> WriterSilence | None:
        """Return our NameNode's report of the writer; None without one within WRITER_SECONDS.

        A later answer may have waited in our socket while we were stopped, and be out of date.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            silence = await ask_writer_silence(
                self._own.service, deadline_seconds=WRITER_SECONDS, connect=self._around.connect
            )
        except ServiceError as failure:
            log.debug("zkfc.witness.untold", reason=str(failure))
            return None
        return silence if loop.time() - began <= WRITER_SECONDS else None

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


ANSWERS: Final = {
    NoAnswer.LATE: core.Answer.SILENT,
    NoAnswer.NOT_LISTENING: core.Answer.SILENT,
    NoAnswer.UNUSABLE: core.Answer.ANSWERS,
    NoAnswer.BROKEN: core.Answer.UNCLEAR,
    NoAnswer.NOT_ASKED: core.Answer.UNCLEAR,
}
"""The answer that each kind of failed call counts as."""


async def _classify_answer(question: Awaitable[ServiceStatus | None]) -> core.Answer:
    """Await the question, and return the owner's answer."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            status = await question
    except TimeoutError:
        return core.Answer.SILENT
    except ServiceRefused:
        return core.Answer.ANSWERS
    except ServiceUnreachable as failure:
        return ANSWERS[why_no_answer(failure)]
    serves = status is not None and status.state is ServiceState.ACTIVE
    return core.Answer.SERVES if serves else core.Answer.ANSWERS
