"""Bugs of witnessed takeovers, to be planted."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ha.elector import lock_keeper
from ha.elector.lock_keeper import LockKeeper
from ha.elector.zookeeper.transaction import Delete
from ha.service.model import WriterSilence
from ha.zkfc.candidacy import failover_obstacle
from ha.zkfc.process import build
from ha.zkfc.witness import core, runner
from ha.zkfc.witness.core import Answer, Verdict
from ha.zkfc.witness.runner import Witness
from journal import silence
from journal.silence import Heard, Silence
from tests.simulation.engine.mutants import Planting, all_of, replacing


def one_node_is_enough() -> Planting:
    """Let the node that has not heard the writer for longest speak for all."""
    really = silence.weighed

    def weighed(told: Collection[Heard], *, nodes: int) -> Silence:
        found = really(told, nodes=nodes)
        longest = max((one.ago_seconds for one in told), default=0.0)
        return replace(found, witnesses=nodes, silent_seconds=longest)

    return replacing(silence, "weighed", weighed)


def lease_forgotten() -> Planting:
    """Accept any silence, though the writer's lease may run."""
    return replacing(core, "limit_seconds", lambda _settings, _lease: 0.3)


def owner_not_asked() -> Planting:
    """Let the journal alone decide."""

    async def ask_owner(self: Witness, _owner: object) -> Answer:
        return Answer.SILENT

    return replacing(Witness, "_ask_owner", ask_owner)


def controller_not_asked() -> Planting:
    """Take a NameNode that hangs for a dead host, whatever the controller next to it says."""
    really = Witness._ask_anew

    async def ask_anew(self: Witness, address: Any, *, keep: bool) -> Answer:  # noqa: ANN401
        if address.port == self._own.zkfc.port:
            return Answer.SILENT
        return await really(self, address, keep=keep)

    return replacing(Witness, "_ask_anew", ask_anew)


def journal_not_asked() -> Planting:
    """Take an owner that does not answer us to be dead."""
    return replacing(core, "_proven", lambda _settings, _silence: True)


def any_writer_beats() -> Planting:
    """Take a writer of Hadoop's that has nothing to write for a dead one of ours."""

    def witness(one: Heard, epoch: int) -> bool:
        return one.writer == one.promised == epoch

    def proven(settings: core.WitnessSettings, told: WriterSilence) -> bool:
        return 2 * told.witnesses > told.nodes and told.silent_seconds > settings.silence_seconds

    return all_of(replacing(silence, "_witness", witness), replacing(core, "_proven", proven))


def again_and_again() -> Planting:
    """Do not spare the next lock though one was removed, and nothing came of it."""

    def held_back(state: core.State, barred: str) -> Verdict | None:
        return Verdict.BARRED if barred else None

    return replacing(core, "_held_back", held_back)


def flapping_ignored() -> Planting:
    """Repeated failovers, and whatever else bars us, keep a slow active and not its lock."""
    return all_of(
        replacing(failover_obstacle, "too_many", lambda _flapping, _now: False),
        replacing(build, "why_not", lambda _candidacy, _now: ""),
    )


def told_once() -> Planting:
    """Let one look decide."""
    return all_of(replacing(core, "TOLD_IN_A_ROW", 1), replacing(core, "ASKED_IN_VAIN", 1))


def any_lock_at_its_version() -> Planting:
    """Remove the lock by its version alone, which the next one shares."""

    def exactly(self: LockKeeper, lock: Any, count: object) -> tuple[Delete]:  # noqa: ANN401
        return (Delete(self._lock, lock.version),)

    return replacing(LockKeeper, "_exactly", exactly)


def old_looks_count() -> Planting:
    """Let what was seen before our own process was stopped, or ZooKeeper hung, still decide."""
    return all_of(
        replacing(lock_keeper, "PATIENCE_SECONDS", float("inf")),
        replacing(runner, "WRITER_SECONDS", 60.0),
    )
