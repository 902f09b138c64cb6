"""The checkpoint service's decisions, as a table: what it saw, what it does, what it says."""

import re
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from journal.model import Epoch, TxId
from namenode_sim.checkpoint.schedule import CheckpointRules
from spark.ends.sinks.model import UploadVerdict
from spark.service import metrics
from spark.service.core import (
    Action,
    ClusterState,
    Event,
    Failed,
    Look,
    Looked,
    Merge,
    Merged,
    Offered,
    Phase,
    Ready,
    Roll,
    Rolled,
    Rules,
    Sleep,
    State,
    Upload,
    WokeUp,
    step,
)
from tests.deploy.monitoring.documented import section

RULES = Rules(
    due=CheckpointRules(period_seconds=3600, edits=1000, check_seconds=60),
    retry_first_seconds=10,
    retry_most_seconds=100,
)
START = State(last_at=0.0)
PAUSE = Sleep(60)
FIRST_RETRY = Sleep(10)
READY = Ready(TxId(2000), Epoch(3))


def seen(
    image: int = 100, finalized: int = 1500, last: int = 1500, active: str | None = "nn1"
) -> Looked:
    return Looked(
        ClusterState(
            active=active,
            image_txid=TxId(image),
            finalized_txid=TxId(finalized),
            last_txid=TxId(last),
            epoch=Epoch(3),
        )
    )


def looking(image: int | None = 100, **more: object) -> State:
    known = None if image is None else TxId(image)
    state = replace(START, phase=Phase.LOOKING, image_txid=known)
    return replace(state, **more)  # type: ignore[arg-type]


MERGING = looking(phase=Phase.MERGING, seen=seen().seen)
UPLOADING = looking(phase=Phase.UPLOADING, ready=READY, seen=seen().seen)

Row = tuple[State, Event, float, Action, str]

TABLE: dict[str, Row] = {
    "a pause is over": (START, WokeUp(), 1, Look(), "looking"),
    "nothing is new": (looking(), seen(last=100, finalized=100), 9999, PAUSE, "not_due"),
    "few edits, and soon": (looking(), seen(last=1099, finalized=1099), 3599, PAUSE, "not_due"),
    "enough edits": (looking(), seen(last=1100, finalized=1100), 1, Merge(), "merge"),
    "few edits, and late": (looking(), seen(last=102, finalized=102), 3600, Merge(), "merge"),
    "the first look ever": (looking(None), seen(last=1100, finalized=1100), 1, Merge(), "merge"),
    "most of it is in the open segment": (
        looking(), seen(last=1500, finalized=600), 1, Roll(), "roll"),
    "a tenth of it is in the open segment": (
        looking(), seen(last=1500, finalized=1360), 1, Merge(), "merge"),
    "all of it is in the open segment": (
        looking(), seen(last=1500, finalized=100), 1, Roll(), "roll"),
    "the image is newer than what is finalized": (
        looking(), seen(image=300, last=1500, finalized=200), 1, Roll(), "roll"),
    "more than a tenth of what is in no image is in the open segment": (
        looking(1000), seen(image=1000, last=2000, finalized=1850), 1, Roll(), "roll"),
    "the open segment has only its mark": (
        looking(), seen(last=101, finalized=100), 9999, PAUSE, "nothing_finalized"),
    "the open segment has its mark and one edit": (
        looking(), seen(last=102, finalized=100), 9999, Roll(), "roll"),
    "nobody is active": (looking(), seen(active=None), 1, FIRST_RETRY, "failed"),
    "somebody else made one": (
        looking(50), seen(last=1099, finalized=1099), 9999, PAUSE, "made_elsewhere"),
    "rolled": (looking(phase=Phase.ROLLING, seen=seen().seen), Rolled(), 1, Merge(), "merge"),
    "rolled, and all of it was in the open segment": (
        looking(phase=Phase.ROLLING, seen=seen(finalized=100).seen), Rolled(), 1, Merge(), "merge"),
    "not rolled, but some is finalized": (
        looking(phase=Phase.ROLLING, seen=seen(finalized=600).seen), Rolled("no"), 1, Merge(),
        "merge_without_the_rest"),
    "not rolled, and nothing is finalized": (
        looking(phase=Phase.ROLLING, seen=seen(finalized=100).seen), Rolled("no"), 1, FIRST_RETRY,
        "failed"),
    "not rolled, and nothing was seen": (
        looking(phase=Phase.ROLLING), Rolled("no"), 1, FIRST_RETRY, "failed"),
    "merged": (MERGING, Merged(READY), 1, Upload(READY), "merged"),
    "merged, and nothing was seen": (
        looking(None, phase=Phase.MERGING), Merged(READY), 1, Upload(READY), "merged"),
    "the merge found nothing new": (
        MERGING, Merged(Ready(TxId(100), Epoch(3))), 1, PAUSE, "nothing_finalized"),
    "the merge failed": (MERGING, Failed("disk full"), 1, FIRST_RETRY, "failed"),
    "taken": (UPLOADING, Offered(UploadVerdict.TAKEN), 1, PAUSE, "taken"),
    "taken, and we hold none": (
        looking(phase=Phase.UPLOADING), Offered(UploadVerdict.TAKEN), 1, PAUSE, "taken"),
    "not needed": (UPLOADING, Offered(UploadVerdict.NOT_NEEDED), 1, PAUSE, "made_elsewhere"),
    "not needed, and we are told why": (
        UPLOADING, Offered(UploadVerdict.NOT_NEEDED, "nn1 has one"), 1, PAUSE, "made_elsewhere"),
    "a new term": (UPLOADING, Offered(UploadVerdict.SUPERSEDED), 1, FIRST_RETRY, "superseded"),
    "a new term, and we are told which": (
        UPLOADING, Offered(UploadVerdict.SUPERSEDED, "epoch 4"), 1, FIRST_RETRY, "superseded"),
    "no active took it": (UPLOADING, Offered(UploadVerdict.NO_ACTIVE), 1, FIRST_RETRY, "failed"),
    "the upload failed": (UPLOADING, Offered(UploadVerdict.FAILED, "x"), 1, FIRST_RETRY, "failed"),
    "it is offered again": (
        looking(ready=READY), seen(last=101, finalized=101), 1, Upload(READY), "offered_again"),
    "it is offered again though more edits came": (
        looking(ready=READY), seen(last=5000, finalized=5000), 1, Upload(READY), "offered_again"),
    "it was taken although we heard of a failure": (
        looking(ready=READY), seen(image=2000, last=2001), 1, PAUSE, "made_elsewhere"),
    "its term is over": (
        looking(ready=replace(READY, epoch=Epoch(2))), seen(last=101, finalized=101), 1, PAUSE,
        "not_due"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_each_event_has_one_answer(case: str) -> None:
    state, event, now, action, said = TABLE[case]
    decided = step(state, event, RULES, now)
    assert (decided.action, decided.said) == (action, f"checkpoint.{said}")
    waits = isinstance(decided.action, Sleep)
    assert (decided.state.phase is Phase.WAITING) == waits


FAILURES = 2
"""In a row before each row of the table."""

QUIET: dict[str, object] = {"phase": Phase.WAITING, "failures": 0}
FAILING: dict[str, object] = {"phase": Phase.WAITING, "failures": FAILURES + 1}
LOOKED: dict[str, object] = {"phase": Phase.LOOKING}
TO_ROLL: dict[str, object] = {"phase": Phase.ROLLING}
TO_MERGE: dict[str, object] = {"phase": Phase.MERGING}
TO_UPLOAD: dict[str, object] = {"phase": Phase.UPLOADING}
DONE: dict[str, object] = {**QUIET, "ready": None, "last_at": 1}

CHANGES: dict[str, dict[str, object]] = {
    "a pause is over": LOOKED,
    "nothing is new": QUIET,
    "few edits, and soon": QUIET,
    "enough edits": TO_MERGE,
    "few edits, and late": TO_MERGE,
    "the first look ever": {**TO_MERGE, "image_txid": 100},
    "most of it is in the open segment": TO_ROLL,
    "a tenth of it is in the open segment": TO_MERGE,
    "all of it is in the open segment": TO_ROLL,
    "the image is newer than what is finalized": {**TO_ROLL, "image_txid": 300, "last_at": 1},
    "more than a tenth of what is in no image is in the open segment": TO_ROLL,
    "the open segment has only its mark": QUIET,
    "the open segment has its mark and one edit": TO_ROLL,
    "nobody is active": FAILING,
    "somebody else made one": {**QUIET, "image_txid": 100, "last_at": 9999},
    "rolled": TO_MERGE,
    "rolled, and all of it was in the open segment": TO_MERGE,
    "not rolled, but some is finalized": TO_MERGE,
    "not rolled, and nothing is finalized": FAILING,
    "not rolled, and nothing was seen": FAILING,
    "merged": {**TO_UPLOAD, "ready": READY},
    "merged, and nothing was seen": {**TO_UPLOAD, "ready": READY},
    "the merge found nothing new": QUIET,
    "the merge failed": FAILING,
    "taken": {**DONE, "image_txid": 2000},
    "taken, and we hold none": DONE,
    "not needed": DONE,
    "not needed, and we are told why": DONE,
    "a new term": {**FAILING, "ready": None},
    "a new term, and we are told which": {**FAILING, "ready": None},
    "no active took it": FAILING,
    "the upload failed": FAILING,
    "it is offered again": TO_UPLOAD,
    "it is offered again though more edits came": TO_UPLOAD,
    "it was taken although we heard of a failure": {**DONE, "image_txid": 2000},
    "its term is over": {**QUIET, "ready": None},
}


@pytest.mark.parametrize("case", TABLE)
def test_what_is_remembered_is_what_changed(case: str) -> None:
    before, event, now, _, _ = TABLE[case]
    before = replace(before, failures=FAILURES)
    expected = replace(before, **CHANGES[case])  # type: ignore[arg-type]
    if isinstance(event, Looked):
        expected = replace(expected, seen=event.seen)
    assert step(before, event, RULES, now).state == expected


def failed(during: Phase, because: str) -> dict[str, object]:
    return {"during": during, "because": because, "failures": 1, "again_in_seconds": 10}


FACTS: dict[str, dict[str, object]] = {
    "a pause is over": {},
    "nobody is active": failed(Phase.LOOKING, "no NameNode is active"),
    "rolled": {},
    "not rolled, but some is finalized": {"problem": "no"},
    "not rolled, and nothing is finalized": failed(
        Phase.ROLLING, "the log could not be rolled: no"),
    "merged": {"txid": 2000, "epoch": 3},
    "the merge found nothing new": {"txid": 100, "epoch": 3},
    "the merge failed": failed(Phase.MERGING, "disk full"),
    "taken": {"txid": 2000},
    "taken, and we hold none": {"txid": None},
    "not needed": {"txid": 2000},
    "not needed, and we are told why": {"txid": 2000, "because": "nn1 has one"},
    "a new term": failed(Phase.UPLOADING, "the active writes under another epoch"),
    "a new term, and we are told which": failed(Phase.UPLOADING, "epoch 4"),
    "no active took it": failed(Phase.UPLOADING, "no NameNode took the image"),
    "the upload failed": failed(Phase.UPLOADING, "x"),
}  # fmt: skip


@pytest.mark.parametrize("case", FACTS)
def test_what_is_said_comes_with_its_facts(case: str) -> None:
    state, event, now, _, _ = TABLE[case]
    assert step(state, event, RULES, now).facts == FACTS[case]


@pytest.mark.parametrize(
    ("case", "more"),
    [
        ("nothing is new", {}),
        ("somebody else made one", {}),
        ("enough edits", {"because": "1000 edits are in no image"}),
        ("few edits, and late", {"because": "the last checkpoint was 3600 s ago"}),
        ("the open segment has only its mark", {"because": "the last checkpoint was 9999 s ago"}),
        (
            "most of it is in the open segment",
            {"because": "1400 edits are in no image", "in_open_segment": 900},
        ),
        (
            "the image is newer than what is finalized",
            {"because": "1200 edits are in no image", "in_open_segment": 1200},
        ),
        ("it is offered again", {"txid": 2000}),
    ],
)
def test_after_a_look_it_says_what_it_saw(case: str, more: dict[str, object]) -> None:
    state, event, now, _, _ = TABLE[case]
    assert isinstance(event, Looked)
    saw = event.seen
    assert step(state, event, RULES, now).facts == {
        "active": "nn1",
        "image_txid": saw.image_txid,
        "finalized_txid": saw.finalized_txid,
        "last_txid": saw.last_txid,
        "epoch": 3,
        **more,
    }


def test_failures_are_waited_out_twice_as_long_each_time_up_to_a_bound() -> None:
    state, pauses = START, []
    for _ in range(6):
        decided = step(state, Failed("x"), RULES, 1)
        state = decided.state
        assert isinstance(decided.action, Sleep)
        pauses.append(decided.action.seconds)
    assert pauses == [10, 20, 40, 80, 100, 100]
    assert RULES.patience(10**6) == 100


@pytest.mark.parametrize("verdict", [UploadVerdict.TAKEN, UploadVerdict.NOT_NEEDED])
def test_a_checkpoint_by_anybody_starts_the_period_anew(verdict: UploadVerdict) -> None:
    state = step(replace(UPLOADING, failures=3), Offered(verdict), RULES, 5000).state
    assert (state.failures, state.ready, state.last_at) == (0, None, 5000)
    later = step(replace(state, phase=Phase.LOOKING), seen(last=1099), RULES, 5000 + 3599)
    assert later.action == PAUSE


def test_what_was_not_taken_is_kept_and_what_is_superseded_is_not() -> None:
    for verdict in (UploadVerdict.FAILED, UploadVerdict.NO_ACTIVE):
        assert step(UPLOADING, Offered(verdict), RULES, 1).state.ready == READY
    assert step(UPLOADING, Offered(UploadVerdict.SUPERSEDED), RULES, 1).state.ready is None
    unreadable = step(UPLOADING, Failed("the file is gone"), RULES, 1).state
    assert unreadable.ready is None, "only a new merge helps"
    not_asked = replace(UPLOADING, phase=Phase.LOOKING)
    assert step(not_asked, Failed("nobody answers"), RULES, 1).state.ready == READY


def test_nobody_active_does_not_hide_that_somebody_makes_an_image_meanwhile() -> None:
    state = step(looking(50), seen(image=100, active=None), RULES, 10).state
    decided = step(replace(state, phase=Phase.LOOKING), seen(last=101, finalized=101), RULES, 3700)
    assert decided.said == "checkpoint.made_elsewhere"


def test_every_metric_of_the_service_is_documented() -> None:
    metrics.enter_phase(Phase.WAITING)
    rows = documented_rows("Checkpoint service")
    shown = {
        metric.name + ("_total" if metric.type == "counter" else ""): metric
        for metric in REGISTRY.collect()
        if metric.name.startswith("nnha_checkpointer_")
    }
    assert shown.keys() == rows.keys()
    assert len(rows) >= 10
    for name, metric in shown.items():
        assert (rows[name][0], rows[name][2]) == (metric.type, metric.documentation)


def documented_rows(title: str) -> dict[str, tuple[str, str, str]]:
    found = re.findall(
        r"^\| `(nnha_\w+)` \| (.+) \| (.+) \| (.+) \|$", section(title), re.MULTILINE
    )
    return {name: (kind, labels, says) for name, kind, labels, says in found}
