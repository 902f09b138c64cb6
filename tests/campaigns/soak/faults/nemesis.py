"""Strikes with drawn faults, heals them, and keeps a record of what the cluster suffered when."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.processes import ManagedProcess, wait_until
from tests.campaigns.soak.faults import faults, hosts
from tests.campaigns.soak.faults.cluster import START_SECONDS, Cluster
from tests.campaigns.soak.faults.faults import What, named
from tests.campaigns.soak.faults.fitness import Condition
from tests.campaigns.soak.faults.site import listens

STEP_SECONDS: Final = 120.0
QUIET_SECONDS: Final = 0.5
"""Before an active is stopped its writes end: it holds reads back behind one that cannot end."""
WRITING_SECONDS: Final = 1.0
"""For this time clients write to the successor of a stopped active, before that one goes on."""
NOTICE_FOR: Final = "5m"
"""Longer than any fault; it is ended when the fault is over."""

Log = Callable[[Mapping[str, object]], None]


@dataclass(slots=True)
class _Standing:
    """What one fault that lasts does to the cluster."""

    what: What
    down: frozenset[str] = frozenset()
    killed: frozenset[str] = frozenset()
    """Those of them that must be started again."""
    drops: Mapping[tuple[str, str], int] = field(default_factory=dict)
    bad: frozenset[str] = frozenset()


@dataclass(slots=True)
class Nemesis:
    """Plays rounds; each fault that lasts has a number."""

    cluster: Cluster
    log: Log
    conditions: list[Condition] = field(default_factory=list)
    exit_codes: dict[str, int] = field(default_factory=dict)
    """How often each operator's command ended with which code."""
    disturbed: list[str] = field(default_factory=list)
    """What an active that had been replaced did to its successor."""
    _standing: dict[int, _Standing] = field(default_factory=dict)
    _commands: list[str] = field(default_factory=list)
    _made: int = 0
    _alone: bool = True
    """Whether one fault strikes in this round."""
    _returned: tuple[str, ManagedProcess] | None = None
    """Whose successor is who, while the former goes on."""

    def begin(self) -> None:
        """Begin the record; nothing is the matter yet."""
        self.conditions.append(Condition(time.monotonic()))

    def play(self, drawn: tuple[faults.Fault, ...]) -> None:
        """Strike and heal, each at its time; raises LocalClusterError where a step fails."""
        roles = self._roles()
        self._alone = len(drawn) == 1
        began = time.monotonic()
        steps: list[tuple[float, Callable[[], None]]] = []
        for number, fault in enumerate(drawn):
            what = named(fault.what, roles)
            start, end = fault.after_seconds, fault.after_seconds + fault.seconds
            steps += self._flapping(number, fault, what, start, end)
        for at, step in sorted(steps, key=lambda each: each[0]):
            self.cluster.watched_wait(began + at - time.monotonic())
            step()
        self._await_commands()

    def _flapping(
        self, number: int, fault: faults.Fault, what: What, start: float, end: float
    ) -> list[tuple[float, Callable[[], None]]]:
        flaps = what.flaps if isinstance(what, faults.Cut) else 1
        length = (end - start) / (2 * flaps - 1)
        steps: list[tuple[float, Callable[[], None]]] = []
        for flap in range(flaps):
            at = start + 2 * flap * length
            steps.append((at, lambda: self._strike(number, fault, what)))
            steps.append((at + length, lambda: self._heal(number, what)))
        return steps

    def _roles(self) -> dict[str, str]:
        active = self.cluster.system.active() or hosts.NAMENODES[0]
        others = [name for name in hosts.NAMENODES if name != active]
        return {faults.ACTIVE: active, **dict(zip(faults.STANDBYS, others, strict=True))}

    # Strikes.

    def _strike(self, number: int, fault: faults.Fault, what: What) -> None:  # noqa: C901, PLR0912 - flat dispatch
        self.log({"event": "strike", **fault.line(), "named": str(what)})
        # Noted before it is done, and a heal after: a fault is never shorter than its record.
        self._standing[number] = standing = _standing(what)
        self._note()
        cluster = self.cluster
        match what:
            case faults.Kill(processes):
                cluster.hold_down(processes)
            case faults.Freeze(processes):
                for name in processes:
                    cluster.process(name).freeze()
            case faults.Cut() | faults.Loss():
                self._apply_drops()
            case faults.Narrow(host, kilobits, queue):
                cluster.network.narrow(host, kilobits, queue)
            case faults.FullDisk(host):
                cluster.disks.fill(host)
            case faults.ReadOnlyDisk(host):
                cluster.hold_down(hosts.processes_of(host))
                cluster.disks.read_only(host)
                cluster.release(hosts.processes_of(host))
            case faults.SlowDisk(host, milliseconds):
                cluster.preloads.set_flush(host, milliseconds)
            case faults.Wipe(host):
                self._wipe(host)
            case faults.Clock(host, offset):
                cluster.preloads.set_clock(host, offset)
            case faults.Switchover(target):
                self._switch_over(target)
            case faults.Pause(kill):
                self._operate("pause", "pause", "--for", NOTICE_FOR, "--reason", "a fault")
                if kill:
                    standing.down = standing.killed = frozenset({self._roles()[faults.ACTIVE]})
                    cluster.hold_down(sorted(standing.killed))
            case faults.Drain(namenode):
                self._operate(
                    "drain", "drain", namenode, "--for", NOTICE_FOR, "--reason", "a fault"
                )
            case faults.RollingRestart(processes):
                self._restart_each(processes)
            case faults.Revenant():
                self._return_from_the_dead(standing, what)
            case _:
                assert_never(what)

    def _heal(self, number: int, what: What) -> None:  # noqa: C901, PLR0912 - flat dispatch
        ended = self._standing.pop(number)
        cluster = self.cluster
        match what:
            case faults.Kill() | faults.Pause(True):
                still = frozenset().union(*(each.killed for each in self._standing.values()))
                cluster.release(sorted(ended.killed - still))
            case faults.Freeze(processes):
                for name in processes:
                    cluster.process(name).thaw()
            case faults.Cut() | faults.Loss():
                self._apply_drops()
            case faults.Revenant():
                self._apply_drops()
                self._judge_return()
            case faults.Narrow(host):
                cluster.network.widen(host)
            case faults.FullDisk(host):
                cluster.disks.make_room(host)
                self._restart(hosts.processes_of(host)[:1])
            case faults.ReadOnlyDisk(host):
                cluster.hold_down(hosts.processes_of(host))
                cluster.disks.writable(host)
                cluster.release(hosts.processes_of(host))
            case faults.SlowDisk(host):
                cluster.preloads.set_flush(host, 0)
            case faults.Clock(host):
                cluster.preloads.set_clock(host, 0.0)
            case faults.Drain(namenode):
                self._operate("drain --end", "drain", namenode, "--end")
            case faults.Pause() | faults.Wipe() | faults.Switchover() | faults.RollingRestart():
                pass
            case _:
                assert_never(what)
        if isinstance(what, faults.Pause):
            self._operate("resume", "resume")
        self._note()
        self.log({"event": "heal", "named": str(what)})

    # What takes several steps.

    def _wipe(self, host: str) -> None:
        cluster = self.cluster
        cluster.hold_down((host,))
        cluster.disks.wipe(host)
        cluster.release((host,))
        learn = cluster.system.learn(host)
        if learn is None:
            return
        name = f"learn-{self._number()}"
        deadline = time.monotonic() + START_SECONDS
        while True:  # until the node is up, and there is an active that lets others report it
            process = cluster.run_on(hosts.OPERATORS, name, learn)
            if process.wait(START_SECONDS) == 0:
                break
            if time.monotonic() > deadline:
                raise LocalClusterError(
                    f"Tried to format the wiped {host}; {process.ended_early()}"
                )
            cluster.watched_wait(0.5)
        cluster.supervisor.forget(name)

    def _restart(self, processes: tuple[str, ...]) -> None:
        self.cluster.stop(processes)
        self.cluster.release(processes)

    def _restart_each(self, processes: tuple[str, ...]) -> None:
        for name in processes:
            self._restart((name,))
            self.cluster.wait_settled(self.cluster.system.settle_seconds)

    def _return_from_the_dead(self, standing: _Standing, what: faults.Revenant) -> None:
        cluster, roles = self.cluster, self._roles()
        former, others = roles[faults.ACTIVE], [roles[one] for one in faults.STANDBYS]
        unseen = faults.ways_between((former,), (*hosts.ZOOKEEPERS, *others, hosts.CLIENTS))
        self._drop_too(standing, (*unseen, *faults.ways_between((hosts.READERS,), others)))
        cluster.watched_wait(QUIET_SECONDS)
        standing.down = frozenset({former})
        self._note()
        cluster.process(former).freeze()
        self._wait(lambda: cluster.system.active() in others, "another NameNode to be active")
        successor = cluster.process(cluster.system.active() or others[0])
        cluster.watched_wait(WRITING_SECONDS)
        if what.cut_off:
            self._drop_too(standing, faults.ways_between((former,), hosts.JOURNALNODES))
        if what.restarted:
            standing.down |= frozenset(what.restarted)
            self._drop_too(standing, faults.ways_between(others, hosts.JOURNALNODES))
            cluster.hold_down(what.restarted)
            cluster.release(what.restarted)
            self._wait(
                lambda: all(listens(host, hosts.JOURNAL_PORT) for host in what.restarted),
                f"{' and '.join(what.restarted)} to listen",
            )
        cluster.process(former).thaw()
        standing.down = frozenset()
        self._note()
        self._returned = None if what.restarted else (former, successor)

    def _drop_too(self, standing: _Standing, ways: tuple[tuple[str, str], ...]) -> None:
        standing.drops = {**standing.drops, **dict.fromkeys(ways, 100)}
        self._note()
        self._apply_drops()

    def _judge_return(self) -> None:
        """Check, where nothing else struck, that a replaced NameNode let its successor live."""
        if self._returned is None or not self._alone:
            return
        former, successor = self._returned
        if not successor.running:
            self.disturbed.append(f"{former} went on, and its successor {successor.name} ended")

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        def looked() -> bool:
            self.cluster.revive()
            return holds()

        wait_until(looked, what=what, deadline_seconds=STEP_SECONDS, poll_seconds=0.1)

    def _switch_over(self, target: str) -> None:
        """Ask for it, and do not wait: the cluster may be struck in the meantime."""
        active = self._roles()[faults.ACTIVE]
        name = f"switchover-{self._number()}"
        self.cluster.run_on(hosts.OPERATORS, name, self.cluster.system.switchover(active, target))
        self._commands.append(name)

    def _operate(self, label: str, *arguments: str) -> None:
        name = f"operate-{self._number()}"
        self.cluster.run_on(hosts.OPERATORS, name, self.cluster.system.operate(*arguments))
        self._await(name, label)

    def _await_commands(self) -> None:
        for name in self._commands:
            self._await(name, "switchover")
        self._commands.clear()

    def _await(self, name: str, label: str) -> None:
        process = self.cluster.process(name)
        self._wait(lambda: not process.running, f"an operator's {label} to end")
        outcome = f"{label}: exit {process.exit_code}"
        self.exit_codes[outcome] = self.exit_codes.get(outcome, 0) + 1
        self.log({"event": "command", "command": label, "exit": process.exit_code})
        self.cluster.supervisor.forget(name)

    def _number(self) -> int:
        self._made += 1
        return self._made

    # The record.

    def _down(self) -> frozenset[str]:
        return frozenset().union(*(each.down for each in self._standing.values()))

    def _drops(self) -> dict[tuple[str, str], int]:
        drops: dict[tuple[str, str], int] = {}
        for each in self._standing.values():
            for way, share in each.drops.items():
                drops[way] = max(share, drops.get(way, 0))
        return drops

    def _apply_drops(self) -> None:
        self.cluster.network.drop(self._drops())

    def _note(self) -> None:
        drops = self._drops()
        bad = frozenset().union(*(each.bad for each in self._standing.values()))
        cut = frozenset(way for way, share in drops.items() if share >= 100)
        self.conditions.append(Condition(time.monotonic(), self._down(), cut, bad))


def _standing(what: What) -> _Standing:
    match what:
        case faults.Kill(processes):
            return _Standing(what, down=frozenset(processes), killed=frozenset(processes))
        case faults.Freeze(processes):
            return _Standing(what, down=frozenset(processes))
        case faults.Cut(cut):
            return _Standing(what, drops=dict.fromkeys(cut, 100))
        case faults.Loss(host, percent):
            others = [
                other for other in (*hosts.SERVERS, hosts.CLIENTS, hosts.READERS) if other != host
            ]
            drops = dict.fromkeys(faults.ways_between((host,), others), percent)
            return _Standing(what, drops=drops, bad=frozenset({host}))
        case faults.Narrow(host) | faults.FullDisk(host) | faults.SlowDisk(host):
            return _Standing(what, bad=frozenset({host}))
        case faults.ReadOnlyDisk(host) | faults.Wipe(host):
            return _Standing(what, down=frozenset({host}))
        case (
            faults.Clock()
            | faults.Switchover()
            | faults.Drain()
            | faults.RollingRestart()
            | faults.Revenant()
        ):
            return _Standing(what)
        case faults.Pause(kill):
            # No other may take over in the meantime.
            return _Standing(what, bad=frozenset(hosts.NAMENODES if kill else ()))
    assert_never(what)
