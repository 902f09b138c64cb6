"""Bugs of witnessed takeovers, to be planted."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from ha.elector import lock_keeper
from ha.elector.lock_keeper import LockKeeper
from ha.elector.zookeeper.transaction import Delete
from ha.service.model import WriterSilence
from ha.service.no_answer import NoAnswer
from ha.zkfc.candidacy import failover_obstacle
from ha.zkfc.process import build
from ha.zkfc.witness import core, runner
from ha.zkfc.witness.core import Answer, SilenceVerdict
from ha.zkfc.witness.runner import Witness
from journal import silence
from journal.silence import Heard
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing
from tests.simulation.failover.mutants import UNCHECKED

_WITNESS: Final = "tests/ha/zkfc/test_witness.py::test_"
_WITNESS_RUNNER: Final = "tests/ha/zkfc/test_witness_runner.py::test_"
_BY_ITSELF: Final = "tests/ha/zkfc/test_by_itself.py::test_"
bug: Final = Planted(300, beside=UNCHECKED)


@bug.replacing("one JournalNode's word is enough", silence, "weigh", 1500)
def one_node_is_enough(really: Any, told: Collection[Heard], *, nodes: int) -> Any:
    found = really(told, nodes=nodes)
    longest = max((one.ago_seconds for one in told), default=0.0)
    return replace(found, witnesses=nodes, silent_seconds=longest)


bug.add(
    "the writer's lease is forgotten",
    replacing(core, "limit_seconds", lambda _settings, _lease: 0.3),
    1500,
)


@bug.replacing("the owner of the lock is not asked", Witness, "_ask_owner", 1500)
async def owner_not_asked(self: Witness, _owner: object) -> Answer:
    return Answer.SILENT


@bug.replacing("its controller is not asked", Witness, "_ask_controller", 1500)
async def controller_not_asked(_self: Witness, _address: object) -> Answer:
    return Answer.SILENT


_PROBES: Final = "tests/ha/zkfc/test_probes.py::test_what_the_witness_takes_for_silence_"


@bug.killed_by(
    f"{_WITNESS_RUNNER}each_is_asked_as_what_it_is", why="the worlds have no certificates"
)
@bug.replacing("the controller is asked as a NameNode", Witness, "_ask_controller", 0)
async def controller_asked_as_namenode(self: Witness, address: Any) -> Answer:
    return await self._ask_anew(address, keep=False)


@bug.killed_by(
    f"{_PROBES}under_certificates[a certificate of role namenode-zkfc]",
    why="the worlds have no certificates",
)
@bug("a wrong certificate is silence", 0)
def wrong_certificate_is_silence() -> Planting:
    return replacing(runner, "ANSWERS", runner.ANSWERS | {NoAnswer.UNUSABLE: Answer.SILENT})


bug.add(
    "the journal is not asked",
    replacing(core, "_is_proven", lambda _settings, _silence: True),
    1500,
)


@bug("any writer sends heartbeats", 1500)
def any_writer_beats() -> Planting:
    def witness(one: Heard, epoch: int) -> bool:
        return one.writer == one.promised == epoch

    def proven(settings: core.WitnessSettings, told: WriterSilence) -> bool:
        return 2 * told.witnesses > told.nodes and told.silent_seconds > settings.silence_seconds

    return all_of(replacing(silence, "_witness", witness), replacing(core, "_is_proven", proven))


@bug.replacing("lock after lock is removed", core, "_find_block", 1500)
def again_and_again(state: core.State, barred: str) -> SilenceVerdict | None:
    return SilenceVerdict.BARRED if barred else None


@bug.killed_by(
    _BY_ITSELF + "what_keeps_us_from_another_s_lock[flapping]",
    why="it takes three takeovers by one controller within the window, and a silent host then",
)
@bug("the flapping rules do not hold for locks", 1500)
def flapping_ignored() -> Planting:
    return all_of(
        replacing(failover_obstacle, "is_flapping", lambda _flapping, _now: False),
        replacing(build, "lock_removal_obstacle", lambda _candidacy, _now: ""),
    )


@bug.killed_by(
    _WITNESS + "the_lock_is_removed_when_and_only_when[told once]",
    why="it takes two nodes that were stopped, and an owner that is cut off just then",
)
@bug("one look decides", 1500)
def told_once() -> Planting:
    return all_of(
        replacing(core, "SILENT_REPORTS_NEEDED", 1), replacing(core, "UNANSWERED_NEEDED", 1)
    )


@bug.killed_by(
    "tests/ha/elector/test_lock_keeper.py::test_a_lock_that_is_made_anew_in_the_last_moment_stands",
    why="it takes another lock between a look and what follows it at once",
)
@bug.replacing("a lock goes by its version", LockKeeper, "_deletion_of", 1500)
def any_lock_at_its_version(self: LockKeeper, lock: Any, count: object) -> tuple[Delete]:
    return (Delete(self._lock, lock.version),)


@bug.killed_by(
    _WITNESS_RUNNER + "what_our_namenode_told_before_we_were_stopped_is_old",
    why="it takes a controller that is stopped between two answers",
)
@bug("old looks count", 1500)
def old_looks_count() -> Planting:
    return all_of(
        replacing(lock_keeper, "PATIENCE_SECONDS", float("inf")),
        replacing(runner, "WRITER_SECONDS", 60.0),
    )
