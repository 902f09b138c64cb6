"""The catalogue of planted bugs of the control plane: each must be seen by some check."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from ha.elector import core as election_core
from ha.elector import runner
from ha.zkfc.candidacy import core as candidacy_core
from tests.simulation.engine.planting import Planting, all_of, replacing
from tests.simulation.failover import planted_control as control
from tests.simulation.failover import planted_elector as elector


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug; it may survive at most ``seeds`` drawn worlds."""

    name: str
    plant: Planting
    seeds: int = 300


@contextmanager
def planted(mutant: Mutant, *, own_checks: bool = False) -> Iterator[None]:
    """The product with this bug in it.

    Its own invariants are off: they would end the controller before the world has shown what comes
    of the bug, and whether the oracle sees that.
    """
    with ExitStack() as stack:
        mutant.plant(stack)
        if not own_checks:
            _UNCHECKED(stack)
        yield


_UNCHECKED: Final = all_of(
    replacing(election_core, "checked", lambda _before, _event, step: step),
    replacing(candidacy_core, "checked", lambda _before, _event, step: step),
    replacing(runner, "ensure_attempt", lambda _state, _attempt, _stage: None),
)


MUTANTS: Final = (
    # ---- the election ----
    Mutant("news of an old session believed", elector.stale_session_believed()),
    Mutant("NodeExists taken as won", elector.node_exists_is_won()),
    Mutant("any lock is ours", elector.look_believes_anybody()),
    Mutant("answers of an old attempt believed", elector.stale_attempt_believed()),
    Mutant("a reconnect is trusted", elector.reconnect_is_trusted()),
    Mutant("an expiry is a reconnect", elector.expiry_is_a_reconnect()),
    Mutant("a lock lost for a moment was never lost", elector.gone_lock_keeps_serving()),
    Mutant("losing sight of ZooKeeper demotes", elector.neutral_demotes()),
    Mutant("only watches tell", elector.never_looks_by_itself()),
    Mutant("a takeover is not abandoned", elector.takeover_not_abandoned()),
    # ---- the order of a takeover, and the breadcrumb ----
    Mutant("active before the fence is done", elector.fence_not_awaited()),
    Mutant("a breadcrumb that looks alike is ours", elector.alike_is_own()),
    Mutant("the breadcrumb is only replaced", elector.unread_is_none()),
    Mutant("promoted without a breadcrumb", elector.promotes_without_writing()),
    Mutant("our name before the fence", elector.writes_before_fencing()),
    Mutant("leaving always deletes the breadcrumb", elector.quit_forgets_the_breadcrumb()),
    Mutant("the lock goes before the breadcrumb", elector.release_before_the_breadcrumb()),
    Mutant("the breadcrumb goes at any version", elector.any_version_is_deleted()),
    Mutant("ill, and no breadcrumb left", control.ill_leaves_no_breadcrumb()),
    # ---- fencing ----
    Mutant("a fence that timed out succeeded", control.timeout_is_success()),
    Mutant("a fence that failed succeeded", control.failure_is_fenced()),
    Mutant("silence is taken for standby", control.silence_is_standby()),
    Mutant("journal-epoch proves death", control.epoch_proves_death()),
    Mutant("a predecessor that never settled", control.unsettled_predecessor()),
    Mutant("a death is guessed", control.death_is_guessed()),
    Mutant("a record of any term counts", control.any_term_counts()),
    Mutant("nobody else serves, without proof", control.claims_nobody_serves()),
    Mutant("nobody else serves, and never will", control.claim_without_end()),
    # ---- cedes and hand-overs ----
    Mutant("a cede never fences", control.cede_never_fences()),
    Mutant("a cede without a demotion", control.cede_without_demotion()),
    Mutant("a cede forgets the promotion", control.cede_forgets_the_promotion()),
    Mutant("a cede ends at once", control.cede_ends_at_once()),
    Mutant("a cede never ends", control.cede_never_ends()),
    Mutant("peers are not released", control.peers_not_released()),
    Mutant("an earlier hand-over's success counts", control.any_attempt_counts()),
    Mutant("the lock is success", control.lock_is_success()),
    Mutant("a hand-over waits in vain", control.waits_in_vain()),
    Mutant("rivals stand back for each other", control.stands_back_for_a_rival(), seeds=1500),
    Mutant("a failed attempt is success", control.failure_is_success()),
    # ---- the controller's judgement ----
    Mutant("the NameNode's word is ignored", control.reports_not_believed()),
    Mutant("bad health is ignored", control.bad_health_ignored(), seeds=600),
    Mutant("wall clock used", control.wall_clock()),
    Mutant("a pause is not obeyed", control.pause_not_obeyed()),
    Mutant("work of the election overtakes", control.overtaking_demotion()),
    Mutant("no demotion is sent", control.demotion_not_sent()),
    Mutant("a silent promotion succeeded", control.promotes_though_failed()),
)
