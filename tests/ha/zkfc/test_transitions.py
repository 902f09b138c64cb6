"""The candidacy in many places, and what each event makes of it: reviewed as one text.

Times are whole seconds, so that the last moment of each wait is met, too.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

from ha.elector.model import Role
from ha.health.core import Health, Trouble
from ha.notices.seen import FREE, Notices
from ha.service.model import ServiceState
from ha.zkfc.candidacy import model
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.eligibility import Rank
from ha.zkfc.candidacy.failback import FailBack
from ha.zkfc.candidacy.flapping import Flapping, FlapSettings
from ha.zkfc.candidacy.model import CedeAsked
from ha.zkfc.candidacy.state import (
    Active,
    Candidacy,
    DrainAttempt,
    Joined,
    Out,
    StoodBack,
    TakingOver,
    Waiting,
)
from tests.ha.zkfc.elections import ABANDONED, ELECTED, ELECTED_AS_PLANNED, LOCK_WON, moved
from tests.ha.zkfc.test_standing import (
    BACK,
    BETTER,
    DRAIN,
    NAMESAKE,
    NOW,
    PAUSE,
    PEER,
    candidacy,
    inside,
    sees,
)
from tests.transitions import crossed, same_as, walked

HERE = Path(__file__).parent
S = ServiceState
LATER = replace(PEER, namenode="nn3", zkfc_rpc="far:8019")
LOWER = replace(PEER, state="active", priority=50)
UNFIT = replace(BETTER, health="unhealthy")
READING = replace(BETTER, ready=False)
STEPS = 1500
PAUSES = (0.0, 0.0, 1.0, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0)

NOTICES = {
    "nobody": Notices(),
    "held": Notices(lock_holder="nn2"),
    "held by a standby": Notices(members=(PEER, LATER), lock_holder="nn2"),
    "held by an active": Notices(
        members=(replace(PEER, state="active"), LATER), lock_holder="nn2"),
    "held by a lower one": Notices(members=(LOWER, LATER), lock_holder="nn2"),
    "held by an ill one": Notices(
        members=(replace(LOWER, health="unhealthy"),), lock_holder="nn2"),
    "ours": Notices(members=(PEER, LATER), lock_holder="nn1"),
    "free": Notices(members=(PEER,), lock_holder=FREE),
    "free, a better one": Notices(members=(LATER, BETTER), lock_holder=FREE),
    "held, a better one": Notices(members=(LATER, BETTER), lock_holder="nn3"),
    "free, unfit": Notices(members=(UNFIT, READING), lock_holder=FREE),
    "free, it comes back": Notices(members=(BACK,), lock_holder=FREE),
    "namesake": Notices(lock_holder="nn2", namesake=NAMESAKE),
    "pause": Notices(pause=PAUSE, members=(PEER,), lock_holder="nn2"),
    "pause, ours": Notices(pause=PAUSE, members=(PEER,), lock_holder="nn1"),
    "pause, free": Notices(pause=PAUSE, members=(PEER,), lock_holder=FREE),
    "pause, active elsewhere": Notices(pause=PAUSE, members=(LOWER,), lock_holder="nn2"),
    "drain": Notices(drain=DRAIN, members=(PEER, BETTER), lock_holder="nn1"),
    "drain, held": Notices(drain=DRAIN, members=(PEER,), lock_holder="nn2"),
    "drain, nobody fit": Notices(drain=DRAIN, members=(UNFIT, READING), lock_holder="nn1"),
    "drain, one just coming": Notices(
        drain=DRAIN, members=(replace(PEER, in_election=False),), lock_holder="nn1"),
    "held by a lower one, an equal before us": Notices(
        members=(LOWER, replace(BETTER, namenode="nn0")), lock_holder="nn2"),
    "held by a lower one, an equal behind us": Notices(
        members=(LOWER, replace(BETTER, namenode="nn3")), lock_holder="nn2"),
    "free, it stands by": Notices(members=(replace(BACK, state="standby"),), lock_holder=FREE),
    "free, never": Notices(members=(replace(PEER, nofailover=True),), lock_holder=FREE),
    "held, two better ones": Notices(
        members=(replace(READING, priority=300), replace(BETTER, namenode="nn3", priority=150)),
        lock_holder="nn4"),
    "held, a better one that is in and says why not": Notices(
        members=(replace(BETTER, out_because="ceded"),), lock_holder="nn3"),
    "pause, unknown": Notices(pause=PAUSE),
    "pause, another is active": Notices(
        pause=PAUSE, members=(replace(LATER, state="active"), PEER), lock_holder="nn2"),
    "held by an active, earlier": Notices(
        members=(replace(PEER, state="active"),), lock_holder="nn2", lock_made=7),
    "held by an active, later": Notices(
        members=(replace(PEER, state="active"),), lock_holder="nn2", lock_made=9),
    "drain, pause": Notices(drain=DRAIN, pause=PAUSE, members=(PEER,), lock_holder="nn1"),
}  # fmt: skip
EVENTS: dict[str, model.Event] = {
    "well": model.HealthChanged(Health.HEALTHY, Trouble.NONE),
    "ill": model.HealthChanged(Health.UNHEALTHY, Trouble.ILL, "disk"),
    "slow": model.HealthChanged(Health.NOT_RESPONDING, Trouble.SLOW, "late"),
    "gone": model.HealthChanged(Health.NOT_RESPONDING, Trouble.GONE),
    "starting": model.HealthChanged(Health.INITIALIZING, Trouble.NONE, "loading"),
    "monitor failed": model.HealthChanged(Health.MONITOR_FAILED, Trouble.ILL),
    "says active": model.StatusReported(S.ACTIVE),
    "says standby": model.StatusReported(S.STANDBY),
    "says standby, unready": model.StatusReported(
        S.STANDBY, ready=False, not_ready_reason="safe mode"
    ),
    "says initializing": model.StatusReported(S.INITIALIZING),
    "says observer": model.StatusReported(S.OBSERVER),
    "wins the lock": LOCK_WON,
    "sees its lock 8": model.OwnLockSeen(8),
    "is elected": ELECTED,
    "is elected as planned": ELECTED_AS_PLANNED,
    "loses its ground": ABANDONED,
    "goes on taking over": moved(Role.TAKING_OVER, Role.TAKING_OVER),
    "active leaves": moved(Role.ACTIVE, Role.INIT),
    "stands by": moved(Role.NEUTRAL, Role.STANDBY),
    "transition": model.TransitionBegun(),
    "demoted": model.DemotionTried(),
    "not demoted": model.DemotionTried("timeout"),
    "demotion spared": model.DemotionSpared(),
    "takeover failed": model.TakeoverFailed(),
    "cede 5": CedeAsked(5.0, needs_fencing=False),
    "cede 2, to be fenced": CedeAsked(2.0, needs_fencing=True, because="handed over"),
    "cede ended": model.CedeEnded(),
    "hand-over begun": model.HandOverBegun(),
    "hand-over ended": model.HandOverEnded(),
    "drain tried": model.DrainTried(""),
    "drain refused": model.DrainTried("refused"),
    "recheck": model.RecheckDue(),
    **{f"notices: {name}": model.NoticesSeen(notices) for name, notices in NOTICES.items()},
}
NAMES: dict[object, str] = dict.fromkeys(NOTICES.values(), "<those>")

PREFERRED = Rank(priority=200, failback_after_seconds=60.0)
LOW, NEVER = Rank(priority=50), Rank(nofailover=True)
FLAPPING = Flapping(
    settings=FlapSettings(failovers=2, window_seconds=100.0, delay_seconds=10.0),
    takeovers=(NOW - 100.0, NOW - 50.0, NOW - 1.0),
    trouble_since=NOW - 4.0,
)


def on(name: str, rank: Rank | None = None, *, ready: bool = True) -> Candidacy:
    return candidacy(NOTICES[name], rank=rank, ready=ready)


def standing(one: Candidacy, **changes: object) -> Candidacy:
    return replace(one, standing=replace(one.standing, **changes))  # type: ignore[arg-type]


def leads(since: float, *tries: float) -> Candidacy:
    return replace(
        inside(on("held by a lower one", PREFERRED)),
        fail_back=FailBack(since=NOW - since, tries=tries, holder="nn2", moves=(NOW - 600.0,)),
    )


WELL = on("held")
ACTIVE = inside(on("ours"), S.ACTIVE)
STANDBY = inside(WELL)
STATES: dict[str, Candidacy] = {
    "new": Candidacy(),
    "notices not read": candidacy(None),
    "out": WELL,
    "out, reported nothing": replace(WELL, reported=None),
    "out, says active": replace(on("free"), reported=S.ACTIVE),
    "out, says active, held": replace(WELL, reported=S.ACTIVE),
    "out, ill": replace(WELL, health=Health.UNHEALTHY, health_reason="disk"),
    "out, an observer": replace(WELL, reported=S.OBSERVER),
    "out, not demoted": replace(WELL, not_demoted="timeout", reported=None),
    "out, stood back for 3": replace(WELL, place=Out("ceded", StoodBack(NOW + 3.0, "ceded"))),
    "out, stood back until now": replace(WELL, place=Out("ceded", StoodBack(NOW, "ceded"))),
    "out, gave the lock away in a pause": standing(
        replace(on("pause"), place=Out("ceded", StoodBack(NOW + 1.0, "ceded"))), may_return=True),
    "out, gave the lock away, drained": standing(on("drain, held"), may_return=True),
    "out, asked for in a pause": standing(on("pause"), hand_overs=1),
    "out, paused": on("pause"),
    "out, paused, says active, free": replace(on("pause, free"), reported=S.ACTIVE),
    "out, drained": on("drain, held"),
    "out, drained and asked for": standing(on("drain, held"), hand_overs=1),
    "out, a namesake": on("namesake"),
    "out, never": on("held", NEVER),
    "out, free": on("free"),
    "out, low, held": on("held, a better one", LOW),
    "out, low, free": on("free, a better one", LOW),
    "out, low, free for 2": standing(on("free, a better one", LOW), free_since=NOW - 2.0),
    "out, low, unfit ones": on("free, unfit", LOW),
    "out, it comes back": on("free, it comes back"),
    "out, unready": on("held", ready=False),
    "out, unready for 5": standing(on("held", ready=False), no_ready_peer_since=NOW - 5.0),
    "out, unready, free for 5": standing(on("free", ready=False), free_since=NOW - 5.0),
    "out, unready once": standing(on("held by a standby"), unready_in_a_row=1, ready=False),
    "out, ill, stood back for 3": replace(
        WELL, health=Health.UNHEALTHY, place=Out("ill", StoodBack(NOW + 3.0, "ceded"))),
    "out, says active, paused, holder unknown": replace(
        on("pause, unknown"), reported=S.ACTIVE),
    "out, unready for 4": standing(on("held", ready=False), no_ready_peer_since=NOW - 4.0),
    "out, low, unready for 5": standing(
        on("held, a better one", LOW, ready=False), no_ready_peer_since=NOW - 5.0),
    "out, low, unready, two better ones": standing(
        on("held, two better ones", LOW, ready=False), no_ready_peer_since=NOW - 5.0),
    "out, low, two better ones": on("held, two better ones", LOW),
    "waiting, an observer": replace(WELL, place=Waiting("outranked"), reported=S.OBSERVER),
    "waiting": replace(on("held, a better one", LOW), place=Waiting("outranked")),
    "joined": replace(WELL, place=Joined()),
    "joined, contradicted": replace(WELL, place=Joined(), contradicted=True),
    "standing by": STANDBY,
    "standing by, contradicted": replace(STANDBY, contradicted=True),
    "standing by, contradicted, paused": replace(inside(on("pause")), contradicted=True),
    "standing by, preferred, in transition": replace(leads(60.0), in_transition=True),
    "standing by, preferred, says active": replace(leads(60.0), reported=S.ACTIVE),
    "standing by, preferred, tried six times, for 1920": leads(1920.0, *(NOW - 3000.0,) * 6),
    "standing by, preferred, moved long ago": replace(
        leads(60.0), fail_back=FailBack(
            since=NOW - 60.0, holder="nn2", moves=(NOW - 600.0, NOW - 2.0, NOW - 1.0))),
    "standing by, in transition": replace(STANDBY, in_transition=True, contradicted=True),
    "standing by, unready once": standing(STANDBY, unready_in_a_row=1, ready=False),
    "standing by, low": inside(on("held", LOW)),
    "standing by, paused": inside(on("pause")),
    "standing by, asked for": standing(inside(on("pause")), hand_overs=2),
    "standing by, says active": replace(STANDBY, reported=S.ACTIVE),
    "standing by, preferred for 59": leads(59.0),
    "standing by, preferred for 60": leads(60.0),
    "standing by, preferred, tried": leads(119.0, NOW - 64 * 60.0, NOW - 200.0),
    "standing by, preferred, tried, for 120": leads(120.0, NOW - 64 * 60.0, NOW - 200.0),
    "standing by, preferred, and it moved": replace(
        leads(60.0), fail_back=FailBack(
            since=NOW - 60.0, holder="nn2", moves=(NOW - 9.0, NOW - 5.0, NOW - 1.0))),
    "standing by, preferred, unready": standing(leads(60.0), ready=False, unready_in_a_row=1),
    "taking over": replace(STANDBY, place=TakingOver(S.STANDBY), in_transition=True),
    "taking over, kept": replace(STANDBY, place=TakingOver(S.INITIALIZING, "kept")),
    "taking over, may return": standing(
        replace(STANDBY, place=TakingOver(S.STANDBY)), may_return=True),
    "active": ACTIVE,
    "active, notices not read": standing(ACTIVE, notices=None),
    "active, notices not read, contradicted": standing(
        replace(ACTIVE, contradicted=True), notices=None),
    "active, contradicted": replace(ACTIVE, contradicted=True),
    "active, contradicted, paused": sees(replace(ACTIVE, contradicted=True), pause=PAUSE),
    "active, in transition": replace(ACTIVE, in_transition=True, contradicted=True),
    "active, paused": sees(ACTIVE, pause=PAUSE),
    "active, paused, ill": sees(
        replace(ACTIVE, health=Health.UNHEALTHY, health_reason="disk"), pause=PAUSE),
    "active since lock 8": standing(ACTIVE, own_lock=8),
    "active, knows an earlier lock, 7": standing(
        inside(on("held by an active, earlier"), S.ACTIVE), own_lock=6),
    "out, gave lock 8 away in a pause": standing(
        replace(on("pause"), place=Out("ceded", StoodBack(NOW + 1.0, "ceded"))),
        may_return=True, own_lock=8),
    "standing by, knows an active's lock": inside(on("held by an active, earlier")),
    "active, replaced without having heard it": standing(
        inside(on("held by an active, later"), S.ACTIVE), own_lock=8),
    "active, called replaced, it is not known when": inside(on("held by an active"), S.ACTIVE),
    "active, kept": replace(ACTIVE, place=Active("kept")),
    "active, flapping": replace(ACTIVE, flapping=FLAPPING),
    "active, flapping, in no trouble": replace(
        ACTIVE, flapping=replace(FLAPPING, trouble_since=None)),
    "active, flapped before": replace(
        ACTIVE, flapping=replace(FLAPPING, takeovers=(NOW - 100.0, NOW - 1.0))),
    "active, flapping never matters": replace(
        ACTIVE, flapping=replace(FLAPPING, settings=replace(FLAPPING.settings, failovers=0))),
    "active, flapping once is enough": replace(
        ACTIVE, flapping=replace(
            FLAPPING, takeovers=(NOW - 1.0,), settings=replace(FLAPPING.settings, failovers=1))),
    "active, flapping, slow for 9": replace(
        ACTIVE, health=Health.NOT_RESPONDING, trouble=Trouble.SLOW,
        flapping=replace(FLAPPING, trouble_since=NOW - 9.0)),
    "active, flapping, slow for 10": replace(
        ACTIVE, health=Health.NOT_RESPONDING, trouble=Trouble.SLOW,
        flapping=replace(FLAPPING, trouble_since=NOW - 10.0)),
    "active, drained": inside(on("drain"), S.ACTIVE),
    "active, drained, handing over": replace(
        inside(on("drain"), S.ACTIVE), place=Active("drained", handing_over=True)),
    "active, drained, refused": replace(
        inside(on("drain"), S.ACTIVE), last_drain=DrainAttempt("refused", NOW + 2.0)),
    "active, drained, refused long ago": replace(
        inside(on("drain"), S.ACTIVE), last_drain=DrainAttempt("refused", NOW)),
    "active, drained, nobody fit": inside(on("drain, nobody fit"), S.ACTIVE),
    "active, drained, paused": inside(on("drain, pause"), S.ACTIVE),
    "active, after failures": replace(ACTIVE, failures=3),
}  # fmt: skip


def at_now(state: Candidacy, event: model.Event) -> tuple[Candidacy, tuple[model.Decision, ...]]:
    result = step(state, event, now=NOW)
    return result.state, result.decisions


def test_every_event_in_many_places_is_as_it_was_reviewed() -> None:
    same_as(HERE / "transitions.txt", crossed(STATES, EVENTS, at_now, NAMES))


def test_a_long_life_is_as_it_was_reviewed() -> None:
    """Give the elector's news in the election only, the others at any time."""
    rng, clock = Random(2), [NOW]
    standing_ = candidacy(None, rank=PREFERRED).standing
    flapping = Flapping(settings=FlapSettings(failovers=2, window_seconds=60.0, delay_seconds=5.0))

    def events() -> list[tuple[str, model.Event]]:
        return [(name, EVENTS[name]) for name in rng.choices(list(EVENTS), k=STEPS)]

    def later(state: Candidacy, event: model.Event) -> tuple[Candidacy, tuple[model.Decision, ...]]:
        clock[0] += rng.choice(PAUSES)
        if isinstance(event, model.ElectionMoved) and not state.joined:
            return state, ()
        result = step(state, event, now=clock[0])
        return result.state, result.decisions

    start = Candidacy(standing=standing_, flapping=flapping)
    same_as(HERE / "life.txt", walked(start, events(), later, NAMES))
