"""One workload, fixed in advance, under faults at exactly chosen calls: recover, segment 1,
segment 2, takeover, segment 3, and the first writer's late word.

Nothing is drawn here: two runs differ only by their strikes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from journal.errors import InvariantBroken, QuorumLost
from journal.writer.writer import QuorumWriter
from tests.simulation.engine.clock import Process
from tests.simulation.engine.network import Action, Link
from tests.simulation.engine.runs import Outcome, to_the_end
from tests.simulation.journal.contender import Contender, Life, SegmentPlan
from tests.simulation.journal.liveness import go_on, heal
from tests.simulation.journal.swarm import EVENT_KINDS, LIFE_KINDS, MESSAGE_KINDS, Swarm
from tests.simulation.journal.world import World

BACK_SOON_SECONDS: Final = 0.01
"""A machine that crashed before a call is back within the same life of a writer."""
_TAKEOVER_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 12.0


class Kind(StrEnum):
    """What goes wrong with one call."""

    LOSE_REQUEST = "lose-request"
    LOSE_REPLY = "lose-reply"
    CRASH_BEFORE = "crash-before"
    """Power is lost as the request arrives; the machine is back soon."""
    CRASH_AFTER = "crash-after"
    """Power is lost as the answer leaves; the machine is back when the takeover is over."""


@dataclass(frozen=True, slots=True)
class Call:
    """The n-th request that one node is sent, from 1 on."""

    node: str
    number: int


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault at one call."""

    call: Call
    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind}@{self.call.node}#{self.call.number}"


@dataclass(frozen=True, slots=True)
class Played:
    """A run, and the calls that were sent after its last strike's: where the next one may fall."""

    strikes: tuple[Strike, ...]
    outcome: Outcome
    calls_after: tuple[Call, ...]
    whole: bool
    """False if it was left where it had become the same as an earlier one."""


Familiar = Callable[[str, World, Sequence[object]], bool]
"""Asked at each pause, when no message is under way: whether the rest is known from this state."""


_SEGMENT_1: Final = SegmentPlan((2, 1), together=False, closed=True, idle_before=0, idle_inside=0)
_SEGMENT_2: Final = SegmentPlan((1, 1, 1), together=True, closed=False, idle_before=0,
                                idle_inside=0)  # fmt: skip
_SEGMENT_3: Final = SegmentPlan((2,), together=False, closed=True, idle_before=0, idle_inside=0)


def play(
    strikes: tuple[Strike, ...] = (),
    *,
    nodes: int = 3,
    silent: bool = False,
    keep_trace: bool = False,
    familiar: Familiar = lambda _pause, _world, _more: False,
) -> Played:
    """Play the workload with these strikes, in the order in which their calls are sent.

    ``silent`` lets lost messages show as nothing at all, instead of as a broken connection.
    """
    world = World(0, None, keep_trace, calm(nodes))
    script = _Script(
        world, {strike.call: strike.kind for strike in strikes}, familiar, len(strikes) < 2
    )
    world.network.script = script.judge
    world.network.silence = float(silent)
    outcome = to_the_end(world, script.play())
    return Played(strikes, outcome, tuple(script.calls_after), script.whole)


def calm(nodes: int) -> Swarm:
    return Swarm(
        nodes=nodes,
        rates=dict.fromkeys(MESSAGE_KINDS, 0.0),
        events=dict.fromkeys(EVENT_KINDS, 0.0),
        lives=dict.fromkeys(LIFE_KINDS, 0.0),
        writers=0,
        readers=0,
        crowd=0.0,
        held=False,
        unclosed=0.0,
    )


@dataclass(slots=True)
class _Script:
    """Plays the workload in a world, and lets the strikes fall."""

    world: World
    strikes: dict[Call, Kind]
    familiar: Familiar
    few: bool
    """Of single strikes also the syncers' work is awaited; of thousands of pairs it is not."""
    whole: bool = True
    calls_after: list[Call] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _awaited: dict[tuple[Link, str], tuple[Call, Kind]] = field(default_factory=dict)
    _back_later: list[str] = field(default_factory=list)
    _late_word: bool = False

    # ---- the workload ----

    async def play(self) -> None:
        """Play two writers, then the healed world."""
        world = self.world
        for machine in world.machines.values():
            machine.booted = world.compare(machine)
            machine.boot()
        first, second = self._contender(1), self._contender(2)
        one, other = self._process(first), self._process(second)
        old, new = one.context.run(first.new_writer), other.context.run(second.new_writer)
        await self._until_done(one, self._rule(first, old, (_SEGMENT_1, _SEGMENT_2)))
        await asyncio.sleep(_TAKEOVER_SECONDS)
        if self._is_familiar("takeover", old):
            return
        await self._until_done(other, self._rule(second, new, (_SEGMENT_3,)))
        for name in self._back_later:
            world.restart(world.machines[name])
        await self._until_done(one, self._say_more(first, old))
        for process, writer in ((one, old), (other, new)):
            await self._until_done(process, writer.close())
        world.network.script = None
        await heal(world)
        if not self._is_familiar("healed"):
            await go_on(world, alike=self.few)

    def _is_familiar(self, pause: str, *writers: QuorumWriter) -> bool:
        if self.strikes:
            return False
        more: list[object] = [sorted(self._back_later), sorted(map(str, self._awaited))]
        for writer in writers:
            more += [writer._window.next, writer._death is None, writer._window.segment_first]
            more += [(status.in_sync, status.acked_txid) for status in writer.node_statuses()]
        self.whole = not self.familiar(pause, self.world, more)
        return not self.whole

    def _contender(self, number: int) -> Contender:
        world, life = self.world, Life(f"w{number}", 0.0, (), 0.0)
        return Contender(life, world.machines, world.loop, world.oracle, world.trace)

    def _process(self, contender: Contender) -> Process:
        name = contender.life.name
        process = self.world.writers[name] = Process(name, self.world.loop)
        return process

    async def _until_done(self, process: Process, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wait([process.spawn(work)], timeout=_PATIENCE_SECONDS)
        self.world.look()

    async def _rule(
        self, who: Contender, writer: QuorumWriter, plans: tuple[SegmentPlan, ...]
    ) -> None:
        oracle, name = self.world.oracle, who.life.name
        try:
            recovered = await writer.become_writer()
            oracle.won(name, recovered.epoch)
            oracle.adopted(name, recovered.epoch, recovered.last_txid)
            txid = recovered.last_txid + 1
            for plan in plans:
                txid = await who.segment(writer, plan, txid)
        except (QuorumLost, InvariantBroken) as end:
            who.judge_end(end)

    async def _say_more(self, who: Contender, writer: QuorumWriter) -> None:
        """Write on as a writer does that has not heard of its successor."""
        if writer._death is not None or writer._window.segment_first is None:
            return
        self._late_word = True
        try:
            await who.write_some(writer, writer._window.next, 1)
        except (QuorumLost, InvariantBroken) as end:
            who.judge_end(end)

    # ---- the strikes ----

    def judge(
        self, link: Link, what: str, arrive: Action, lost: Action
    ) -> tuple[Action, Action] | None:
        if what.startswith("answer "):
            return self._judge_answer(link, what, arrive, lost)
        if link[1] not in self.world.machines or what == "end of stream":
            return arrive, lost
        if self._late_word and what == "ResumeSegment":
            return arrive, lost  # a fenced writer asks once more while it is being closed
        number = self._counts[link[1]] = self._counts.get(link[1], 0) + 1
        call = Call(link[1], number)
        kind = self.strikes.pop(call, None)
        if kind is None:
            self.calls_after.append(call)
            return arrive, lost
        self.calls_after.clear()
        match kind:
            case Kind.LOSE_REQUEST:
                self._strike(call, kind, f"loses {what}")
                return None
            case Kind.CRASH_BEFORE:
                return lambda: self._crash_before(call, what, arrive), lost
            case Kind.LOSE_REPLY | Kind.CRASH_AFTER:
                self._awaited[((link[1], link[0]), f"answer {what}")] = (call, kind)
                return arrive, lost

    def _judge_answer(
        self, link: Link, what: str, arrive: Action, lost: Action
    ) -> tuple[Action, Action] | None:
        awaited = self._awaited.pop((link, what), None)
        if awaited is None:
            return arrive, lost
        call, kind = awaited
        if kind is Kind.CRASH_AFTER:
            if not self._lose_power(call, kind, what):
                return arrive, lost
            self._back_later.append(call.node)
        else:
            self._strike(call, kind, f"loses {what}")
        return None

    def _crash_before(self, call: Call, what: str, arrive: Action) -> None:
        if self._lose_power(call, Kind.CRASH_BEFORE, what):
            world = self.world
            world.loop.call_later(BACK_SOON_SECONDS, world.restart, world.machines[call.node])
        arrive()

    def _lose_power(self, call: Call, kind: Kind, what: str) -> bool:
        machine = self.world.machines[call.node]
        if not machine.up or self.world.faults.over:  # it was sent before the end of all faults
            return False
        self._strike(call, kind, f"at {what}")
        machine.kill("power lost")
        machine.platter.lose_unsynced()
        return True

    def _strike(self, call: Call, kind: Kind, what: str) -> None:
        strike = Strike(call, kind)
        self.world.faults.allowed(str(strike))
        self.world.trace.add(call.node, what, str(strike))
