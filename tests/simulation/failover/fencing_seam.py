"""Simulated fencing methods: they work, do nothing, work too late, or report a false success."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from typing import Any, Final

from fencing import model
from fencing.fencer import fence
from fencing.shell import Finished, Overran
from fencing.ssh_settings import SshSettings
from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.trace import Trace
from tests.simulation.failover.hosts import LIFE, Host, WorldNetwork

POWER: Final = "power-off"
"""``shell(power-off)``: works on a dead machine, too."""

Fenced = Callable[[str, str, bool | None], None]
"""Called at each success: victim, by whom, and whether it is true (None: nothing was claimed)."""


class Fencers:
    """Stands for ``run_command`` and ``fence_over_ssh``."""

    def __init__(
        self, hosts: Mapping[str, Host], network: WorldNetwork, faults: Faults, trace: Trace,
        loop: VirtualLoop,
    ) -> None:  # fmt: skip
        self.on_success: Fenced = lambda _victim, _by, _true: None
        self._hosts = hosts
        self._network = network
        self._faults = faults
        self._trace = trace
        self._loop = loop

    async def fence(
        self,
        methods: Sequence[model.MethodSpec],
        target: model.Target,
        **named: Any,  # noqa: ANN401
    ) -> model.FencingReport:
        """Fence as the product does; but note a success of the method that touches no process."""
        report = await fence(methods, target, run=self.run_command, over_ssh=self.over_ssh, **named)
        if report.fenced and report.attempts[-1].method == str(model.JournalEpochMethod()):
            self.on_success(target.namenode, LIFE.get().host.name, None)
        return report

    async def run_command(
        self, command: str, environment: Mapping[str, str], *, deadline_seconds: float
    ) -> Finished | Overran:
        """Play a power switch."""
        victim = environment["target_namenodeid"]
        done = await self._try(victim, deadline_seconds, reaches=True)
        if done is None:
            return Overran("")
        return Finished(0 if done else 1, "")

    async def over_ssh(
        self,
        method: model.SshMethod,
        target: model.Target,
        settings: SshSettings,
        *,
        deadline_seconds: float,
    ) -> tuple[model.FencingOutcome, str, str]:
        """Kill the process on a machine that runs and can be reached."""
        here = LIFE.get().host.name
        reaches = self._hosts[target.host].on and not self._network.is_cut(here, target.host)
        done = await self._try(target.namenode, deadline_seconds, reaches=reaches)
        if done is None:
            return model.FencingOutcome.TIMED_OUT, "gave up", ""
        return (model.FencingOutcome.SUCCEEDED if done else model.FencingOutcome.FAILED), "ssh", ""

    async def _try(self, victim: str, deadline_seconds: float, *, reaches: bool) -> bool | None:
        me = LIFE.get().host.name
        if not reaches:
            await asyncio.sleep(deadline_seconds)
            return None
        if name := self._faults.strikes("fence-hang", me):
            late = self._faults.random(name).choice((0.0, 0.0, 1.0, 4.0))
            self._trace.add(me, f"fencing of {victim} hangs; the kill comes {late} s late", name)
            if late:
                when = self._loop.now + deadline_seconds + late
                self._faults.lasts(when)
                Context().run(self._loop.at, when, self._kill, victim)
            await asyncio.sleep(deadline_seconds)
            return None
        rng = self._faults.random("fence", me, self._loop.now)
        await asyncio.sleep(rng.choice((0.05, 0.2, 0.8)))
        if name := self._faults.strikes("fence-fail", me):
            self._trace.add(me, f"cannot fence {victim}", name)
            return False
        if name := self._faults.strikes("fence-lie", me):
            self._trace.add(me, f"lies about {victim}", name)
            self.on_success(victim, me, False)
            return True
        self._kill(victim)
        self.on_success(victim, me, True)
        return True

    def _kill(self, victim: str) -> None:
        self._hosts[victim].kill("namenode", "fenced")
