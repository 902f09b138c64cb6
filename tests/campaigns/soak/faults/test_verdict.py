"""Each thing that may be wrong with a run is found, and reported in words."""

from dataclasses import asdict, replace

import pytest

from tests.campaigns.soak.faults.campaign import Played, Round
from tests.campaigns.soak.faults.faults import Fault, Kill
from tests.campaigns.soak.faults.file_clients import Outcome
from tests.campaigns.soak.faults.fitness import Condition
from tests.campaigns.soak.faults.history import ABSENT, UNKNOWN, Ask, Call
from tests.campaigns.soak.faults.linearizability import MAKER
from tests.campaigns.soak.faults.verdict import BOUND_SECONDS, distribution, verdict

KILL = Fault(Kill(("active",)), 0.0, 2.0)


def call(at: float, ask: Ask, answer: str = "") -> Call:
    return Call(1, "/p", ask, "", at, at + 0.1, answer, "nn1")


WELL = Played(
    conditions=[Condition(0.0), Condition(1.0, down=frozenset({"nn1"})), Condition(3.0)],
    commands={"pause: exit 0": 1},
    looks=40,
    claims={1: {"nn1"}, 2: {"nn2"}},
    calls=[call(0.2, Ask.MAKE), *(call(at, Ask.READ, MAKER) for at in (0.5, 2.5, 5.0, 7.0))],
    rounds=[Round((KILL,), 1.0, 3.0, 0.5)],
    skipped={"clock: there is no gcc": 2},
    ended=8.0,
    journal_gaps=[],
    journal_forks=[],
    verify="",
)


def test_a_good_run_is_well_and_its_gaps_are_told() -> None:
    told = verdict(WELL)
    assert told.findings == ()
    assert told.facts["faults"] == 1
    assert told.facts["kinds"] == {"kill active": 1}
    assert told.facts["faults_per_hour"] == 1800
    assert told.facts["skipped"] == {"clock: there is no gcc": 2}
    assert told.facts["files"] is None
    files = Outcome(900, 2, 70_000, (), ())
    with_files = verdict(replace(WELL, files=files))
    assert with_files.findings == ()
    assert with_files.facts["files"] == asdict(files)
    worst = told.facts["unavailable_seconds"]
    assert isinstance(worst, dict)
    assert worst["max"] == pytest.approx(2.5)


SILENT = [call(0.2, Ask.MAKE), *(call(0.3 + at / 10, Ask.READ, MAKER) for at in range(4))]
BAD = {
    "a write is lost": (
        replace(WELL, calls=[*WELL.calls, call(9.0, Ask.READ, ABSENT)]),
        "no order explains what clients were told of /p",
    ),
    "two are active": (
        replace(WELL, claims={1: {"nn1"}, 2: {"nn3", "nn2"}}),
        "epoch 2: nn2 and nn3 called themselves active",
    ),
    "a file is wrong": (
        replace(WELL, files=Outcome(9, 1, 70_000, ("/files/w0/f1: 3 bytes were read",), ())),
        "1 files are not as they were written: /files/w0/f1: 3 bytes were read",
    ),
    "nobody could write files": (
        replace(WELL, files=Outcome(0, 4, 0, (), ())),
        "only 0 calls on files succeeded",
    ),
    "an edit is missing": (replace(WELL, journal_gaps=[17]), "edits are missing from the journal"),
    "history has forked": (replace(WELL, journal_forks=[3]), "edits differ between nodes"),
    "copies differ": (replace(WELL, verify="verify ended with exit code 8"), "exit code 8"),
    "it does not get well": (replace(WELL, trouble="Waited 120 s for"), "Waited 120 s"),
    "it does not get through the first round": (
        replace(WELL, rounds=[], trouble="Waited 120 s for"),
        "Waited 120 s",
    ),
    "a stranger is let in": (replace(WELL, let_in=["jn1 shows its page"]), "jn1 shows its page"),
    "who was replaced disturbs its successor": (
        replace(WELL, disturbed=["nn1 went on, and its successor nn2 ended"]),
        "its successor nn2 ended",
    ),
    "nobody serves although it could": (
        replace(WELL, calls=SILENT, ended=BOUND_SECONDS + 9),
        "nobody served for",
    ),
    "clients were not answered at all": (
        replace(WELL, calls=[call(0.2, Ask.MAKE), call(2.0, Ask.MAKE, UNKNOWN)]),
        "only 1 calls were answered in 1 faults",
    ),
}


@pytest.mark.parametrize(("played", "words"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_told(played: Played, words: str) -> None:
    (finding,) = verdict(played).findings
    assert words in finding


def test_a_long_silence_does_not_count_while_nobody_need_serve() -> None:
    away = Condition(1.0, down=frozenset({"nn1", "nn2", "nn3"}))
    silent = replace(WELL, calls=SILENT, ended=BOUND_SECONDS + 9)
    assert verdict(replace(silent, conditions=[Condition(0.0), away])).findings == ()


def test_a_distribution_is_of_all_values() -> None:
    assert distribution([]) == {}
    told = distribution([float(value) for value in range(100)])
    assert told == {"median": 49.5, "p90": 90.0, "p99": 99.0, "max": 99.0}
