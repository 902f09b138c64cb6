"""A JournalNode's core in many states, and what each request makes of it: reviewed as one text."""

from dataclasses import replace
from pathlib import Path

from journal.core import requests
from journal.core import state as core_state
from journal.core.machine import step
from journal.core.segments import OLDEST_LAYOUT
from journal.core.state import Decision, JournalState, OpenSegment
from journal.model import LAYOUT_VERSION, MAX_EPOCH_LEAP, NO_EPOCH, Epoch, Segment, TxId
from tests.journal.core.requests_of import LIFE, NAMESPACE, digest, records, segment
from tests.transitions import crossed, same_as

TABLE = Path(__file__).with_name("transitions.txt")
OTHER = replace(NAMESPACE, namespace_id=7)
FOREIGN = replace(NAMESPACE, cluster_id="other")
NEWER = replace(NAMESPACE, ctime=9)
OTHER_LIFE = "1" * 32
OLD, HELD, NEXT = (
    segment(1, 4, finalized=True), segment(5, 7, 3), segment(8, 9, 3))  # fmt: skip
DONE = replace(HELD, finalized=True)
BEFORE = segment(5, 7, 2)
LONGER, SHORTER = segment(5, 8, 3), segment(5, 6, 3)
E3, E4 = Epoch(3), Epoch(4)


def known(*segments: Segment) -> dict[TxId, Segment]:
    return {each.first: each for each in segments}


BASE = JournalState(
    namespace=NAMESPACE, incarnation=LIFE, promised=E3, writer=E3, serial=5,
    committed=TxId(4), claimed=TxId(4), segments=known(OLD),
)  # fmt: skip
OPEN = replace(
    BASE, open=OpenSegment(TxId(5), TxId(8), digest(5, 7, 3), E3, LAYOUT_VERSION))  # fmt: skip
EMPTY = replace(BASE, open=OpenSegment(TxId(5), TxId(5), b"", E3, LAYOUT_VERSION))
LEFT = replace(BASE, segments=known(OLD, HELD))
CLOSED = replace(BASE, segments=known(OLD, DONE), committed=TxId(7), claimed=TxId(7))
LEARNER = replace(CLOSED, learner=True)
STATES: dict[str, JournalState] = {
    "not formatted": JournalState(),
    "not formatted, not empty": JournalState(occupied=True),
    "fresh": JournalState(namespace=NAMESPACE, incarnation=LIFE),
    "a fresh learner": JournalState(namespace=NAMESPACE, incarnation=LIFE, learner=True),
    "nothing open": BASE,
    "nothing open, restarted": replace(BASE, serial=core_state.SERIAL_UNKNOWN, claimed=TxId(0)),
    "nothing open, promised a newer one": replace(BASE, promised=E4, serial=core_state.NO_SERIAL),
    "open and empty": EMPTY,
    "open": OPEN,
    "open, its writer unknown": replace(
        OPEN, open=OpenSegment(TxId(5), TxId(8), digest(5, 7, 3))),
    "open, of an older writer": replace(
        OPEN, writer=Epoch(2), open=replace(OPEN.open, writer=Epoch(2))),  # type: ignore[type-var]
    "open, claimed further": replace(OPEN, claimed=TxId(9), committed=TxId(7)),
    "open, decided before": replace(OPEN, decisions={TxId(5): Decision(HELD, E3)}),
    "left": LEFT,
    "left, restarted": replace(LEFT, serial=core_state.SERIAL_UNKNOWN),
    "left, committed": replace(LEFT, committed=TxId(7)),
    "left, committed in part": replace(LEFT, committed=TxId(6)),
    "left, of an older writer": replace(BASE, segments=known(OLD, BEFORE)),
    "left, digest unknown": replace(LEFT, segments=known(OLD, replace(HELD, digest=b""))),
    "left and decided": replace(LEFT, decisions={TxId(5): Decision(HELD, Epoch(2))}),
    "left and decided in this epoch": replace(LEFT, decisions={TxId(5): Decision(HELD, E3)}),
    "left and decided otherwise": replace(LEFT, decisions={TxId(5): Decision(LONGER, Epoch(2))}),
    "decided, and nothing here": replace(BASE, decisions={TxId(5): Decision(HELD, Epoch(2))}),
    "left, of a newer writer": replace(BASE, segments=known(OLD, segment(5, 7, 4))),
    "left, of nobody known": replace(BASE, segments=known(OLD, replace(HELD, writer=NO_EPOCH))),
    "left and damaged": LEFT.with_damage(TxId(5), "rot."),
    "two left, the later damaged": replace(
        BASE, segments=known(OLD, HELD, NEXT)).with_damage(TxId(8), "rot"),
    "left, damaged and decided": replace(
        LEFT, decisions={TxId(5): Decision(HELD, E3)}).with_damage(TxId(5), "rot"),
    "closed": CLOSED,
    "closed, digest unknown": replace(CLOSED, segments=known(OLD, replace(DONE, digest=b""))),
    "closed, other edits": replace(CLOSED, segments=known(OLD, replace(BEFORE, finalized=True))),
    "closed and damaged": CLOSED.with_damage(TxId(5), "rot"),
    "closed and damaged, digest unknown": replace(
        CLOSED, segments=known(OLD, replace(DONE, digest=b""))).with_damage(TxId(5), "rot"),
    "closed, other edits, damaged": replace(
        CLOSED, segments=known(OLD, replace(BEFORE, finalized=True))).with_damage(TxId(5), "rot"),
    "closed, the older damaged": CLOSED.with_damage(TxId(1), "rot"),
    "closed and decided": replace(CLOSED, decisions={TxId(5): Decision(HELD, E3)}),
    "closed, and another open": replace(
        CLOSED, open=OpenSegment(TxId(8), TxId(9), digest(8, 8, 3), E3, LAYOUT_VERSION)),
    "closed, and another left": replace(CLOSED, segments=known(OLD, DONE, NEXT)),
    "two left": replace(BASE, segments=known(OLD, HELD, NEXT)),
    "purged": replace(CLOSED, purged=TxId(5), segments=known(DONE)),
    "a learner": LEARNER,
    "a learner that heard a start": replace(LEARNER, start_heard=E3),
    "a learner, open": replace(OPEN, learner=True),
    "a learner that lacks one": replace(LEARNER, segments=known(OLD)),
    "upgrade begun": replace(CLOSED, upgrade_begun=True),
    "upgraded": replace(CLOSED, namespace=NEWER, previous=NAMESPACE),
}  # fmt: skip


def stamp(epoch: int = 3, serial: int = 6, committed: int | None = None) -> requests.Stamp:
    """Make a writer's stamp, by default the next of the present one."""
    return requests.Stamp(Epoch(epoch), serial, None if committed is None else TxId(committed))


def batch(
    stamp_: requests.Stamp, segment_first: int, first: int, last: int, count: int = 0
) -> requests.Journal:
    """Edits of the third writer."""
    data = records(first, last, 3)
    return requests.Journal(
        stamp_, TxId(segment_first), TxId(first), count or last - first + 1, data
    )


FAR = MAX_EPOCH_LEAP + 3
STAMPS: dict[str, requests.Stamp] = {
    "older epoch": stamp(2),
    "next epoch": stamp(4, 0),
    "epoch as far as may be": stamp(FAR),
    "epoch too far": stamp(FAR + 1),
    "same serial": stamp(serial=5),
    "serial far ahead": stamp(serial=2**40),
    "serial -1": stamp(serial=-1),
    "serial 0": stamp(serial=0),
    "committed backward": stamp(committed=3),
    "committed as known": stamp(committed=4),
    "committed 7": stamp(committed=7),
    "committed 8": stamp(committed=8),
    "committed far ahead": stamp(committed=2**50),
    "committed -5": stamp(committed=-5),
    "another file system's": replace(stamp(), namespace_id=7),
    "ours": replace(stamp(), namespace_id=NAMESPACE.namespace_id),
    "with a lease": replace(stamp(), read_lease_micros=1000),
    "with a long lease": replace(stamp(), read_lease_micros=2**50),
    "with a negative lease": replace(stamp(), read_lease_micros=-1),
}
REQUESTS: dict[str, requests.Request] = {
    "format": requests.Format(NAMESPACE, incarnation=OTHER_LIFE),
    "format a learner": requests.Format(NAMESPACE, founding=False, incarnation=OTHER_LIFE),
    "format for nothing":
        requests.Format(replace(NAMESPACE, namespace_id=0), incarnation=OTHER_LIFE),
    "format for no cluster":
        requests.Format(replace(NAMESPACE, cluster_id=""), incarnation=OTHER_LIFE),
    "format by force": requests.Format(NAMESPACE, force=True, incarnation=OTHER_LIFE),
    "format by force, seen": requests.Format(
        OTHER, force=True, incarnation=OTHER_LIFE, seen_promised=E3,
        seen_namespace_id=NAMESPACE.namespace_id),
    "format by force, seen another": requests.Format(
        OTHER, force=True, incarnation=OTHER_LIFE, seen_promised=E3, seen_namespace_id=7),
    "state": requests.GetJournalState(),
    "manifest": requests.GetEditLogManifest(TxId(1)),
    "manifest from 5, in progress": requests.GetEditLogManifest(TxId(5), in_progress_ok=True),
    "manifest from 8, in progress": requests.GetEditLogManifest(TxId(8), in_progress_ok=True),
    "new epoch 3": requests.NewEpoch(NAMESPACE, E3),
    "new epoch 4": requests.NewEpoch(NAMESPACE, E4),
    "new epoch far": requests.NewEpoch(NAMESPACE, Epoch(FAR)),
    "new epoch too far": requests.NewEpoch(NAMESPACE, Epoch(FAR + 1)),
    "new epoch, another file system": requests.NewEpoch(OTHER, E4),
    "new epoch, another cluster": requests.NewEpoch(FOREIGN, E4),
    "start 5": requests.StartLogSegment(stamp(), TxId(5), LAYOUT_VERSION),
    "start 5, next epoch": requests.StartLogSegment(stamp(4, 0), TxId(5), LAYOUT_VERSION),
    "start 8": requests.StartLogSegment(stamp(), TxId(8), LAYOUT_VERSION),
    "start 8, next epoch": requests.StartLogSegment(stamp(4, 0), TxId(8), LAYOUT_VERSION),
    "start 1": requests.StartLogSegment(stamp(), TxId(1), LAYOUT_VERSION),
    "start 0": requests.StartLogSegment(stamp(), TxId(0), LAYOUT_VERSION),
    "start 9": requests.StartLogSegment(stamp(), TxId(9), LAYOUT_VERSION),
    "start 5, a layout of old": requests.StartLogSegment(stamp(), TxId(5), -50),
    "start 5, a layout to come": requests.StartLogSegment(stamp(), TxId(5), -200),
    "batch 5-6": batch(stamp(), 5, 5, 6),
    "batch 8-9": batch(stamp(), 5, 8, 9),
    "batch 8-9, committed": batch(stamp(committed=7), 5, 8, 9),
    "batch 8-9, next epoch": batch(stamp(4, 0), 5, 8, 9),
    "batch 8-9 of segment 8": batch(stamp(), 8, 8, 9),
    "batch 9-9 of segment 8": batch(stamp(), 8, 9, 9),
    "batch 9-9": batch(stamp(), 5, 9, 9),
    "batch 8-9, miscounted": batch(stamp(), 5, 8, 9, 3),
    "batch 8-9, broken": replace(batch(stamp(), 5, 8, 9), records=records(8, 9, 3)[:-1]),
    "batch of none": requests.Journal(stamp(), TxId(5), TxId(8), 0, b""),
    "finalize 5-7": requests.FinalizeLogSegment(stamp(), TxId(5), TxId(7), digest(5, 7, 3)),
    "finalize 5-7, committed": requests.FinalizeLogSegment(
        stamp(committed=7), TxId(5), TxId(7), digest(5, 7, 3)),
    "finalize 5-7, next epoch": requests.FinalizeLogSegment(
        stamp(4, 0), TxId(5), TxId(7), digest(5, 7, 3)),
    "finalize 5-7, no digest": requests.FinalizeLogSegment(stamp(), TxId(5), TxId(7), None),
    "finalize 5-7, other edits":
        requests.FinalizeLogSegment(stamp(), TxId(5), TxId(7), digest(5, 7, 2)),
    "finalize 5-6": requests.FinalizeLogSegment(stamp(), TxId(5), TxId(6), digest(5, 6, 3)),
    "finalize 5-8": requests.FinalizeLogSegment(stamp(), TxId(5), TxId(8), digest(5, 8, 3)),
    "finalize 5-4": requests.FinalizeLogSegment(stamp(), TxId(5), TxId(4), digest(5, 5, 3)),
    "finalize 1-4": requests.FinalizeLogSegment(stamp(), TxId(1), TxId(4), digest(1, 4)),
    "finalize 8-8": requests.FinalizeLogSegment(stamp(), TxId(8), TxId(8), digest(8, 8, 3)),
    "prepare 5": requests.PrepareRecovery(stamp(), TxId(5)),
    "prepare 1": requests.PrepareRecovery(stamp(), TxId(1)),
    "prepare 5, next epoch": requests.PrepareRecovery(stamp(4, 0), TxId(5)),
    "peek": requests.PeekRecovery(None),
    "peek 5": requests.PeekRecovery(TxId(5)),
    "accept 5-7": requests.AcceptRecovery(stamp(), HELD),
    "accept 5-7, next epoch": requests.AcceptRecovery(stamp(4, 0), HELD),
    "accept 5-7, finalized": requests.AcceptRecovery(stamp(), DONE),
    "accept 5-7, other edits": requests.AcceptRecovery(stamp(), BEFORE),
    "accept 5-7, an unknown writer":
        requests.AcceptRecovery(stamp(), replace(HELD, writer=Epoch(0))),
    "accept 5-7, another writer": requests.AcceptRecovery(stamp(), replace(HELD, writer=Epoch(2))),
    "accept 5-8": requests.AcceptRecovery(stamp(), LONGER),
    "accept 5-6": requests.AcceptRecovery(stamp(), SHORTER),
    "accept 5-4": requests.AcceptRecovery(stamp(), replace(HELD, last=TxId(4))),
    "accept 0-3": requests.AcceptRecovery(stamp(), replace(HELD, first=TxId(0), last=TxId(3))),
    "accept without a digest": requests.AcceptRecovery(stamp(), replace(HELD, digest=b"")),
    "accept 4-6": requests.AcceptRecovery(stamp(), segment(4, 6, 3)),
    "accept 8-9": requests.AcceptRecovery(stamp(), NEXT),
    "adopt 5-7": requests.AdoptRecovery(E3, HELD),
    "accept 7-9": requests.AcceptRecovery(stamp(), segment(7, 9, 3)),
    "accept 3-5": requests.AcceptRecovery(stamp(), segment(3, 5, 3)),
    "accept 0-0": requests.AcceptRecovery(stamp(), replace(HELD, first=TxId(0), last=TxId(0))),
    "adopt 5-7, other edits": requests.AdoptRecovery(E3, BEFORE),
    "adopt 5-8": requests.AdoptRecovery(E3, LONGER),
    "adopt 5-6": requests.AdoptRecovery(E3, SHORTER),
    "adopt 5-7, epoch 2": requests.AdoptRecovery(Epoch(2), HELD),
    "adopt 5-7, epoch 4": requests.AdoptRecovery(E4, HELD),
    "digest of 5": requests.LearnDigest(TxId(5)),
    "adopt finalized 5-7": requests.AdoptFinalized(DONE, fetched=True),
    "adopt finalized 5-7, not fetched": requests.AdoptFinalized(DONE),
    "adopt finalized 5-7, stalled at 7": requests.AdoptFinalized(DONE, stalled_at=TxId(7)),
    "adopt finalized 5-7, stalled at 5":
        requests.AdoptFinalized(DONE, fetched=True, stalled_at=TxId(5)),
    "adopt finalized 5-6": requests.AdoptFinalized(replace(SHORTER, finalized=True), fetched=True),
    "adopt finalized 5-7, other edits": requests.AdoptFinalized(
        replace(BEFORE, finalized=True), fetched=True),
    "adopt finalized 4-6": requests.AdoptFinalized(segment(4, 6, 3, finalized=True), fetched=True),
    "adopt finalized 8-9": requests.AdoptFinalized(replace(NEXT, finalized=True), fetched=True),
    "resume 5": requests.ResumeSegment(stamp(), TxId(5), LAYOUT_VERSION),
    "resume 5, next epoch": requests.ResumeSegment(stamp(4, 0), TxId(5), LAYOUT_VERSION),
    "resume 8": requests.ResumeSegment(stamp(), TxId(8), LAYOUT_VERSION),
    "resume 0": requests.ResumeSegment(stamp(), TxId(0), LAYOUT_VERSION),
    "resume 5, a layout to come": requests.ResumeSegment(stamp(), TxId(5), -200),
    "resume 7": requests.ResumeSegment(stamp(), TxId(7), LAYOUT_VERSION),
    "resume 5, the oldest layout": requests.ResumeSegment(stamp(), TxId(5), OLDEST_LAYOUT),
    "resume 5, an older layout": requests.ResumeSegment(stamp(), TxId(5), OLDEST_LAYOUT + 1),
    "catch up 5-5": requests.CatchUp(stamp(), segment(5, 5, 3), LAYOUT_VERSION),
    "catch up 7-7": requests.CatchUp(stamp(), segment(7, 7, 3), LAYOUT_VERSION),
    "catch up 5-4": requests.CatchUp(stamp(), replace(HELD, last=TxId(4)), LAYOUT_VERSION),
    "catch up 0-3": requests.CatchUp(stamp(), replace(HELD, first=TxId(0)), LAYOUT_VERSION),
    "catch up 8-9": requests.CatchUp(stamp(), NEXT, LAYOUT_VERSION),
    "catch up 8-8": requests.CatchUp(stamp(), segment(8, 8, 3), LAYOUT_VERSION),
    "catch up 5-8, a layout of old": requests.CatchUp(stamp(), LONGER, -50),
    "catch up 5-7": requests.CatchUp(stamp(), HELD, LAYOUT_VERSION),
    "catch up 5-8": requests.CatchUp(stamp(), LONGER, LAYOUT_VERSION),
    "catch up 5-7, other edits": requests.CatchUp(stamp(), BEFORE, LAYOUT_VERSION),
    "catch up 5-8, no digest":
        requests.CatchUp(stamp(), replace(LONGER, digest=b""), LAYOUT_VERSION),
    "catch up 5-8, next epoch": requests.CatchUp(stamp(4, 0), LONGER, LAYOUT_VERSION),
    "adopt catch-up 5-8": requests.AdoptCatchUp(E3, LONGER, LAYOUT_VERSION, 1000),
    "adopt catch-up 5-7": requests.AdoptCatchUp(E3, HELD, LAYOUT_VERSION, 1000),
    "adopt catch-up 5-6": requests.AdoptCatchUp(E3, SHORTER, LAYOUT_VERSION, 1000),
    "adopt catch-up 5-8, epoch 2": requests.AdoptCatchUp(Epoch(2), LONGER, LAYOUT_VERSION, 1000),
    "adopt catch-up 5-8, epoch 4": requests.AdoptCatchUp(E4, LONGER, LAYOUT_VERSION, 1000),
    "purge below 5": requests.PurgeLogs(stamp(), TxId(5)),
    "purge below 8": requests.PurgeLogs(stamp(), TxId(8)),
    "purge below 8, committed": requests.PurgeLogs(stamp(committed=7), TxId(8)),
    "purge below 4": requests.PurgeLogs(stamp(), TxId(4)),
    "purge below 100": requests.PurgeLogs(stamp(), TxId(100)),
    "purge below 0": requests.PurgeLogs(stamp(), TxId(0)),
    "admit": requests.Admit(stamp(), LIFE, (OLD, DONE), TxId(7)),
    "admit, an older life": requests.Admit(stamp(), OTHER_LIFE, (OLD, DONE), TxId(7)),
    "admit, nothing required": requests.Admit(stamp(), LIFE, (), TxId(4)),
    "admit, committed 9": requests.Admit(stamp(), LIFE, (OLD,), TxId(9)),
    "admit, purged": requests.Admit(stamp(), LIFE, (DONE,), TxId(7), TxId(5)),
    "admit, next epoch": requests.Admit(stamp(4, 0), LIFE, (OLD, DONE), TxId(7)),
    "admit as a founder": requests.AdmitFounding(LIFE),
    "admit as a founder, an older life": requests.AdmitFounding(OTHER_LIFE),
    "admit by voters": requests.AdmitByVoters(LIFE, E3, (OLD, DONE), TxId(7)),
    "admit by voters, an older life": requests.AdmitByVoters(OTHER_LIFE, E3, (OLD, DONE), TxId(7)),
    "admit by voters, epoch 2": requests.AdmitByVoters(LIFE, Epoch(2), (OLD, DONE), TxId(7)),
    "admit by voters, epoch 4": requests.AdmitByVoters(LIFE, E4, (OLD, DONE), TxId(7)),
    "admit by voters, reached 8": requests.AdmitByVoters(LIFE, E3, (OLD, DONE), TxId(8)),
    "admit by voters, purged": requests.AdmitByVoters(LIFE, E3, (DONE,), TxId(7), TxId(5)),
    "damage of 5": requests.ReportDamage(TxId(5), "rot"),
    "damage of 1": requests.ReportDamage(TxId(1), "rot"),
    "damage of 8": requests.ReportDamage(TxId(8), "rot"),
    "before an upgrade": requests.PreUpgrade(stamp()),
    "before an upgrade, next epoch": requests.PreUpgrade(stamp(4, 0)),
    "upgrade": requests.Upgrade(stamp(), NEWER),
    "upgrade to another": requests.Upgrade(stamp(), replace(NEWER, namespace_id=7)),
    "finalize the upgrade": requests.FinalizeUpgrade(stamp()),
    "can roll back": requests.CanRollBack(NAMESPACE, LAYOUT_VERSION),
    "can roll back, to an older layout": requests.CanRollBack(NAMESPACE, -50),
    "can roll back, another": requests.CanRollBack(OTHER, LAYOUT_VERSION),
    "roll back": requests.RollBack(stamp()),
    "roll back, next epoch": requests.RollBack(stamp(4, 0)),
    "discard from 5": requests.DiscardSegments(stamp(), TxId(5)),
    "discard from 8": requests.DiscardSegments(stamp(), TxId(8)),
    "discard from 6": requests.DiscardSegments(stamp(), TxId(6)),
    "ctime": requests.GetJournalCTime(),
    **{f"heartbeat, {name}": requests.Heartbeat(each) for name, each in STAMPS.items()},
    **{
        f"batch 8-8, {name}": replace(batch(each, 5, 8, 8), stamp=each)
        for name, each in STAMPS.items()
    },
}  # fmt: skip
NAMES: dict[object, str] = {
    OLD: "1-4", HELD: "5-7", DONE: "5-7 finalized", BEFORE: "5-7 of 2", LONGER: "5-8",
    SHORTER: "5-6", NEXT: "8-9", NAMESPACE: "ours", NEWER: "ours, newer", OTHER: "another",
}  # fmt: skip


def took(state: JournalState, request: requests.Request) -> tuple[JournalState, tuple[object, ...]]:
    """Take one step; return the effects, and the reply behind them."""
    result = step(state, request)
    return result.state, (*result.effects, result.reply)


def test_every_request_in_many_states_is_as_it_was_reviewed() -> None:
    same_as(TABLE, crossed(STATES, REQUESTS, took, NAMES))
