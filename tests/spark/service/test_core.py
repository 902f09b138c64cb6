"""The checkpoint service's decisions, as a table: what it saw, what it does, what it says."""

import re
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from journal.model import Epoch, TxId
from namenode_sim.checkpoint.schedule import CheckpointRules
from spark.ends.sinks.verdict import UploadVerdict
from spark.service import metrics
from spark.service.core import (
    Action,
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
    Seen,
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
        Seen(
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
    "the open segment has only its mark": (
        looking(), seen(last=101, finalized=100), 9999, PAUSE, "nothing_finalized"),
    "nobody is active": (looking(), seen(active=None), 1, FIRST_RETRY, "failed"),
    "somebody else made one": (
        looking(50), seen(last=1099, finalized=1099), 9999, PAUSE, "made_elsewhere"),
    "rolled": (looking(phase=Phase.ROLLING, seen=seen().seen), Rolled(), 1, Merge(), "merge"),
    "not rolled, but some is finalized": (
        looking(phase=Phase.ROLLING, seen=seen(finalized=600).seen), Rolled("no"), 1, Merge(),
        "merge_without_the_rest"),
    "not rolled, and nothing is finalized": (
        looking(phase=Phase.ROLLING, seen=seen(finalized=100).seen), Rolled("no"), 1, FIRST_RETRY,
        "failed"),
    "merged": (MERGING, Merged(READY), 1, Upload(READY), "merged"),
    "the merge found nothing new": (
        MERGING, Merged(Ready(TxId(100), Epoch(3))), 1, PAUSE, "nothing_finalized"),
    "the merge failed": (MERGING, Failed("disk full"), 1, FIRST_RETRY, "failed"),
    "taken": (UPLOADING, Offered(UploadVerdict.TAKEN), 1, PAUSE, "taken"),
    "not needed": (UPLOADING, Offered(UploadVerdict.NOT_NEEDED), 1, PAUSE, "made_elsewhere"),
    "a new term": (UPLOADING, Offered(UploadVerdict.SUPERSEDED), 1, FIRST_RETRY, "superseded"),
    "no active took it": (UPLOADING, Offered(UploadVerdict.NO_ACTIVE), 1, FIRST_RETRY, "failed"),
    "the upload failed": (UPLOADING, Offered(UploadVerdict.FAILED, "x"), 1, FIRST_RETRY, "failed"),
    "it is offered again": (
        looking(ready=READY), seen(last=101, finalized=101), 1, Upload(READY), "offered_again"),
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
