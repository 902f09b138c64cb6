"""Three JournalNodes as far as failover sees them: promises, who was heard when, stops and starts.

What a writer of the newest epoch writes is accepted by a majority, so that a world can cut off one
side from some of the nodes.  The silence that they report is weighed by the product's own rule.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from ha.service.errors import ServiceFailed
from ha.service.model import WriterSilence
from journal import silence
from journal.model import Epoch
from journal.silence import Heard
from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.failover.hosts import WorldNetwork
from tests.simulation.failover.namenode import JOURNAL_SECONDS, LEASE_SECONDS, Witness

T = TypeVar("T")

NAMES: Final = ("jn1", "jn2", "jn3")
MAJORITY: Final = 2
_TELL_SECONDS: Final = 0.2
_ALSO_QUICK_SECONDS: Final = 0.02
_REMEMBERED: Final = 40


@dataclass(eq=False)
class JournalNode:
    """One node; a stopped one does in the end what came in the meantime, questions first."""

    name: str
    loop: VirtualLoop
    rate: float = 1.0
    promised: int = 0
    writer: int = 0
    lease: float = 0.0
    heard: deque[float] = field(default_factory=lambda: deque([0.0], _REMEMBERED))
    """When it has heard a writer of the newest epoch, or was started, by the world's clock."""
    stopped: int = 0
    _waiting: list[tuple[bool, Callable[[], None]]] = field(default_factory=list)

    def arrive(self, act: Callable[[], None], *, question: bool) -> None:
        """Take a request; it is looked at when the process runs."""
        if self.stopped:
            self._waiting.append((question, act))
        else:
            act()

    def stop(self) -> None:
        self.stopped += 1

    def go_on(self) -> None:
        """Answer questions, and only then read what the writer has sent: the worst order."""
        self.stopped = max(0, self.stopped - 1)
        if self.stopped:
            return
        waiting, self._waiting = self._waiting, []
        for _, act in sorted(waiting, key=lambda one: not one[0]):
            act()

    def restart(self) -> None:
        """Start a new process: it has the promise, which is on the disk, and heard no writer."""
        self.writer, self.lease, self._waiting = 0, 0.0, []
        self.heard.clear()
        self.heard.append(self.loop.now)

    def grant(self, epoch: int) -> bool:
        """Promise an epoch, if it is newer."""
        if epoch <= self.promised:
            return False
        self.promised = epoch
        return True

    def hear(self, epoch: int, lease: float) -> bool:
        """Take a writer's request; accept it unless a newer one is promised."""
        if epoch < self.promised:
            return False
        if epoch != self.writer:
            self.heard.clear()
        self.promised = self.writer = epoch
        self.lease = lease
        self.heard.append(self.loop.now)
        return True

    def tell(self) -> Heard:
        """Answer as the product's node answers GetJournalState."""
        return Heard(
            promised=Epoch(self.promised),
            writer=Epoch(self.writer),
            ago_seconds=(self.loop.now - self.heard[-1]) * self.rate,
            lease_seconds=self.lease,
        )


class QuorumJournal:
    """The journal of a world in which its nodes are three; see ``namenode.Journal``."""

    names: tuple[str, ...] = NAMES

    def __init__(
        self,
        network: WorldNetwork,
        loop: VirtualLoop,
        witness: Witness,
        rate_of: Callable[[str], float],
        *,
        java: bool,
    ) -> None:
        """Set up the nodes; ``java``: the writers are Hadoop's, without lease and heartbeats."""
        self.epoch = 0
        self.nodes = {name: JournalNode(name, loop, rate_of(name)) for name in NAMES}
        self._network = network
        self._loop = loop
        self._witness = witness
        self._lease = 0.0 if java else LEASE_SECONDS
        self.beats = not java
        self._granted: dict[int, int] = {}
        self._accepted: dict[int, int] = {}
        self._newest = self._writes = 0

    async def claim(self, namenode: str) -> int | None:
        """Claim a new epoch; None without a majority."""
        told = await self._ask(
            namenode, "state", lambda node: node.promised, _majority, question=True
        )
        if len(told) < MAJORITY:
            return None
        epoch = max(told.values()) + 1
        granted = await self._ask(
            namenode, "claim", lambda node: self._grant(node, epoch), _decided
        )
        return epoch if sum(granted.values()) >= MAJORITY else None

    async def write(self, namenode: str, epoch: int) -> bool | None:
        """Return whether an edit of this epoch was accepted; None without an answer."""
        self._writes += 1
        take = partial(self._take, self._writes, namenode, epoch)
        told = await self._ask(namenode, "write", take, _decided)
        if sum(told.values()) >= MAJORITY:
            return True
        return False if _decided(told) else None

    def beat(self, namenode: str, epoch: int) -> None:
        for node in self.nodes.values():
            act = partial(node.hear, epoch, self._lease)
            arrive = partial(node.arrive, act, question=False)  # type: ignore[arg-type]
            self._network.post((namenode, node.name), "beat", arrive, lost=_nothing)

    async def silence(self, namenode: str) -> WriterSilence:
        """Return how long a majority has not heard the newest writer, as a NameNode asks it."""
        told = await self._ask(
            namenode, "silence", JournalNode.tell, _majority, question=True,
            seconds=_TELL_SECONDS, more_seconds=_ALSO_QUICK_SECONDS,
        )  # fmt: skip
        if len(told) < MAJORITY:
            raise ServiceFailed("no majority has answered")
        found = silence.weigh(list(told.values()), nodes=len(NAMES))
        return WriterSilence(
            nodes=found.nodes,
            witnesses=found.witnesses,
            epoch=found.epoch,
            silent_seconds=found.silent_seconds,
            lease_seconds=found.lease_seconds,
        )

    def heal(self) -> None:
        for node in self.nodes.values():
            while node.stopped:
                node.go_on()

    def heard_between(self, since: float, until: float) -> int:
        """Return how many nodes have heard the newest writer then, as far as they remember."""
        nodes = [node for node in self.nodes.values() if node.writer == self.epoch]
        return sum(any(since <= at <= until for at in node.heard) for node in nodes)

    def _grant(self, node: JournalNode, epoch: int) -> bool:
        if not node.grant(epoch):
            return False
        self._granted[epoch] = self._granted.get(epoch, 0) + 1
        if self._granted[epoch] >= MAJORITY:
            self.epoch = max(self.epoch, epoch)
        return True

    def _take(self, number: int, namenode: str, epoch: int, node: JournalNode) -> bool:
        if not node.hear(epoch, self._lease):
            return False
        self._accepted[number] = self._accepted.get(number, 0) + 1
        # A newer writer's recovery has found what a majority took before; then it is no news.
        if self._accepted[number] == MAJORITY and epoch >= self._newest:
            self._newest = epoch
            self._witness.wrote(namenode, epoch)
        return True

    async def _ask(
        self,
        namenode: str,
        what: str,
        act: Callable[[JournalNode], T],
        enough: Callable[[dict[str, T]], bool],
        *,
        question: bool = False,
        seconds: float = JOURNAL_SECONDS,
        more_seconds: float = 0.0,
    ) -> dict[str, T]:
        """Ask all; return what was answered when it was enough, or when the time was over."""
        told: dict[str, T] = {}
        done: asyncio.Future[None] = self._loop.create_future()

        def settle(name: str, value: T) -> None:
            told[name] = value
            if enough(told) and not done.done():
                done.set_result(None)

        def answer(node: JournalNode) -> None:
            back = partial(settle, node.name, act(node))
            link = (node.name, namenode)
            self._network.post(link, f"{what}n", back, lost=_nothing, answer=True)

        for node in self.nodes.values():
            arrive = partial(node.arrive, partial(answer, node), question=question)
            self._network.post((namenode, node.name), what, arrive, lost=_nothing)
        try:
            async with asyncio.timeout(seconds):
                await done
        except TimeoutError:
            return dict(told)
        if more_seconds:
            await asyncio.sleep(more_seconds)
        return dict(told)


def _majority(told: dict[str, T]) -> bool:
    return len(told) >= MAJORITY


def _decided(told: dict[str, bool]) -> bool:
    yes = sum(told.values())
    return yes >= MAJORITY or len(told) - yes >= MAJORITY


def _nothing() -> None:
    """Lose a message."""
