"""A NameNode's role: health, slow and failing transitions, epochs, a read lease."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from ha.rpc.protocol import Call
from ha.service import model
from ha.service.errors import HealthCheckFailed, ServiceFailed
from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.trace import Trace
from tests.simulation.failover.hosts import Life, WorldNetwork

LEASE_SECONDS: Final = 2.0
LEASE_MARGIN: Final = 1.1
"""How much longer a successor waits than a lease lasts: clocks drift."""
_BEAT_SECONDS: Final = 0.4
JOURNAL_SECONDS: Final = 2.0
JOURNAL: Final = "jn"


class Witness(Protocol):
    """Notes what NameNodes do."""

    def wrote(self, namenode: str, epoch: int) -> None:
        """Note that the journal has accepted a write."""

    def served_read(self, namenode: str, epoch: int) -> None:
        """Note that an active has answered a read."""

    def became(self, namenode: str, state: model.ServiceState, asked: int | None) -> None:
        """Note that its role has changed, or was confirmed, by this call (None: by itself)."""

    def confirmed(self, namenode: str, asked: int) -> None:
        """Note that it is active already when the call of this number asks for that."""

    def told_that_predecessor_is_gone(self, namenode: str) -> None:
        """Note the controller's claim that no other NameNode can serve anything."""


class SharedLog(Protocol):
    """The journal as a NameNode writes it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The machines that the journal is on."""

    beats: bool
    """Whether an active sends heartbeats in addition to its writes."""
    epoch: int

    async def claim(self, namenode: str) -> int | None:
        """Claim a new epoch; None without an answer."""

    async def write(self, namenode: str, epoch: int) -> bool | None:
        """Was an edit of this epoch accepted?  None without an answer."""

    def beat(self, namenode: str, epoch: int) -> None:
        """Send a heartbeat of this epoch."""

    async def silence(self, namenode: str) -> model.WriterSilence:
        """Return how long the newest writer has not been heard, as this NameNode hears."""

    def heal(self) -> None: ...


class Journal:
    """The shared edit log as far as it matters here: only the newest epoch may write."""

    names: tuple[str, ...] = (JOURNAL,)
    beats = False

    def __init__(self, network: WorldNetwork, loop: VirtualLoop, witness: Witness) -> None:
        self.epoch = 0
        self.writes = 0
        self._network = network
        self._loop = loop
        self._witness = witness

    async def claim(self, namenode: str) -> int | None:
        return await self._ask(namenode, "claim", self._claimed)

    async def write(self, namenode: str, epoch: int) -> bool | None:
        """Return whether an edit of this epoch was accepted; None without an answer."""
        accepted = await self._ask(namenode, "write", partial(self._written, namenode, epoch))
        return None if accepted is None else bool(accepted)

    def beat(self, namenode: str, epoch: int) -> None:
        """Do nothing: heartbeats do not count here."""

    async def silence(self, namenode: str) -> model.WriterSilence:
        """Refuse: this journal is one for all, and has no nodes."""
        raise ServiceFailed("nobody knows")

    def heal(self) -> None:
        """Do nothing: this journal always works."""

    def _claimed(self) -> int:
        self.epoch += 1
        return self.epoch

    def _written(self, namenode: str, epoch: int) -> bool:
        if epoch < self.epoch:
            return False
        self.writes += 1
        self._witness.wrote(namenode, epoch)
        return True

    async def _ask(self, namenode: str, what: str, act: "partial[bool] | _Claim") -> int | None:
        done: asyncio.Future[int] = self._loop.create_future()

        def arrive() -> None:
            value = act()
            self._network.post(
                (JOURNAL, namenode), f"{what}n", lambda: settle(value), lost=_nothing, answer=True
            )

        def settle(value: int) -> None:
            if not done.done():
                done.set_result(value)

        self._network.post((namenode, JOURNAL), what, arrive, lost=_nothing)
        try:
            async with asyncio.timeout(JOURNAL_SECONDS):
                return await done
        except TimeoutError:
            return None


class _Claim(Protocol):
    def __call__(self) -> int: ...


@dataclass(slots=True)
class Condition:
    """What outlives a NameNode's process: what it will be like when it runs."""

    unwell: str = ""
    ready: bool = True
    answers_late: float = 0.0
    """How many seconds after it has become standby it says so, the next time."""


class NameNode:
    """One life of a NameNode; it serves HAServiceProtocol."""

    def __init__(
        self, life: Life, journal: SharedLog, witness: Witness, faults: Faults, trace: Trace,
        condition: Condition, *, aborts: bool,
    ) -> None:  # fmt: skip
        self.life = life
        self.name = life.host.name
        self.state = model.ServiceState.INITIALIZING
        self.epoch = 0
        self.lease_until = 0.0
        self.condition = condition
        self._journal = journal
        self._witness = witness
        self._faults = faults
        self._trace = trace
        self._loop = life.host.loop
        self._turn = asyncio.Lock()
        self._aborts = aborts
        """A demotion ends a promotion that is under way (ours), or waits for it (Hadoop's)."""
        self._promotion: asyncio.Task[None] | None = None

    async def start(self, seconds: float) -> None:
        """Load the image, so to say."""
        await asyncio.sleep(seconds)
        self._become(model.ServiceState.STANDBY, None)

    # ---- HAServiceProtocol -----------------------------------------------------------------

    async def status(self) -> model.ServiceStatus:
        identity = model.ProcessIdentity(self.life.pid, self.life.pid, self.name)
        reason = "" if self.condition.ready else "in safe mode"
        return model.ServiceStatus(self.state, self.condition.ready, reason, identity)

    async def monitor_health(self) -> None:
        if self.condition.unwell:
            raise HealthCheckFailed(self.condition.unwell)

    async def transition_to_active(
        self, source: model.RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        """Become active; it may take long, or fail."""
        if name := self._faults.strikes("promote-fail", self.name):
            self._trace.add(self.name, "will not become active", name)
            raise ServiceFailed("no")
        async with self._turn:
            if self.state is model.ServiceState.ACTIVE:
                self._witness.confirmed(self.name, call.call_id)
                return
            if self.state is not model.ServiceState.STANDBY:
                raise ServiceFailed(f"it is {self.state}")
            task = self._promotion = asyncio.create_task(
                self._take_over(call.call_id, predecessor_gone_until)
            )
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as end:
                if task.cancelled():
                    raise ServiceFailed("told to stand by meanwhile") from end
                raise
            finally:
                self._promotion = None

    async def transition_to_standby(self, source: model.RequestSource, call: Call) -> None:
        if name := self._faults.strikes("demote-fail", self.name):
            self._trace.add(self.name, "will not stand by", name)
            raise ServiceFailed("no")
        if name := self._faults.strikes("demote-slow", self.name):
            await self._linger(self._faults.random(name).choice((0.5, 1.9, 2.5, 6.0)))
        if self._aborts and self._promotion is not None:
            self._promotion.cancel()
        async with self._turn:
            if self.state is model.ServiceState.INITIALIZING:
                raise ServiceFailed("still starting")
            self._become(model.ServiceState.STANDBY, call.call_id)
        late, self.condition.answers_late = self.condition.answers_late, 0.0
        if late:
            await asyncio.sleep(late)

    # ---- what it does ----------------------------------------------------------------------

    async def _take_over(self, asked: int, predecessor_gone_until: float) -> None:
        if name := self._faults.strikes("promote-slow", self.name):
            seconds = self._faults.random(name).choice((0.5, 2.5, 6.0, 9.0, 12.0))
            self._trace.add(self.name, f"takes {seconds} s to become active", name)
            await self._linger(seconds)
        epoch = await self._journal.claim(self.name)
        if epoch is None:
            raise ServiceFailed("no journal")
        if self._loop.time() < predecessor_gone_until:
            self._witness.told_that_predecessor_is_gone(self.name)
        else:
            await asyncio.sleep(LEASE_SECONDS * LEASE_MARGIN)
        if not await self._journal.write(self.name, epoch):
            raise ServiceFailed("the journal is another's")
        self.epoch = epoch
        self.lease_until = 0.0
        self._become(model.ServiceState.ACTIVE, asked)
        self._serving = asyncio.create_task(self._serve(epoch))
        if self._journal.beats:
            self._beating = asyncio.create_task(self._beat(epoch))

    async def _linger(self, seconds: float) -> None:
        self._faults.lasts(self._loop.now + seconds / self.life.process.rate)
        await asyncio.sleep(seconds)

    async def writer_silence(self) -> model.WriterSilence:
        """Return what its controller asks while the owner of the lock does not answer."""
        return await self._journal.silence(self.name)

    async def _beat(self, epoch: int) -> None:
        while self.state is model.ServiceState.ACTIVE and self.epoch == epoch:
            self._journal.beat(self.name, epoch)
            await asyncio.sleep(_BEAT_SECONDS)

    async def _serve(self, epoch: int) -> None:
        failures = 0
        while self.state is model.ServiceState.ACTIVE and self.epoch == epoch:
            if self._loop.time() < self.lease_until:
                self._witness.served_read(self.name, epoch)
            sent = self._loop.time()
            accepted = await self._journal.write(self.name, epoch)
            if self.state is not model.ServiceState.ACTIVE or self.epoch != epoch:
                return
            if accepted:
                failures, self.lease_until = 0, sent + LEASE_SECONDS
            else:
                failures += 1
                if accepted is False or failures > 1:
                    why = "the journal refuses it" if accepted is False else "no journal"
                    self.life.host.kill("namenode", why)
                    return
            await asyncio.sleep(_BEAT_SECONDS)

    def _become(self, state: model.ServiceState, asked: int | None) -> None:
        if state is not self.state:
            self._trace.add(self.name, f"NameNode {self.state} -> {state}")
        self.state = state
        if state is model.ServiceState.STANDBY:
            self.lease_until = 0.0
        self._witness.became(self.name, state, asked)


def _nothing() -> None:
    """Lose a message."""
