"""A night plays turn after turn, reports the truth about each, and leaves a report after each."""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.campaigns import night
from tests.campaigns.run import main as campaign

PYTHON: Final = (sys.executable, "-c")
HOLDS: Final = night.Turn(("print('{\"seeds\": 7}')",))
BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _play(program: str, folder: Path, *, limit_seconds: float = 60.0) -> night.Played:
    return night.play([*PYTHON, program], folder / "log", limit_seconds)


def test_turns_go_round_until_the_hours_are_over(tmp_path: Path) -> None:
    heard: list[int] = []
    over = night.play_until(
        lambda: len(heard) == 4,
        (night.Turn(("print('{\"first\": 1}')",)),),
        (HOLDS, night.Turn(("1/0",))),
        tmp_path,
        lambda so_far: heard.append(len(so_far)),
        command=PYTHON,
    )
    assert heard == [1, 2, 3, 4]
    assert [each.verdict for each in over] == ["holds", "holds", "FAILED", "holds"]
    assert [each.figures for each in over] == [{"first": 1}, {"seeds": 7}, {}, {"seeds": 7}]
    assert "ZeroDivisionError" in over[2].tail[-1]


def test_a_turn_that_failed_is_not_begun_again_and_the_others_go_on(tmp_path: Path) -> None:
    fails, ends = night.Turn(("1/0",)), night.Turn(("print('{\"ends\": 1}')",))
    heard: list[str] = []

    def play(*every_round: night.Turn) -> list[str]:
        heard.clear()
        night.play_until(
            lambda: len(heard) == 5,
            (),
            every_round,
            tmp_path,
            lambda so_far: heard.append(so_far[-1].verdict),
            command=PYTHON,
        )
        return heard

    assert play(HOLDS, fails, ends) == ["holds", "FAILED", "holds", "holds", "holds"]
    assert play(fails) == ["FAILED"]


def test_no_turn_begins_after_the_hours(tmp_path: Path) -> None:
    assert night.play_until(lambda: True, night.FIRST, night.ROUND, tmp_path, lambda _: None) == []


def test_who_does_not_end_is_stopped_and_unknown(tmp_path: Path) -> None:
    began = time.monotonic()
    played = _play("import time; print('{}', flush=True); time.sleep(600)", tmp_path,
                   limit_seconds=0.5)  # fmt: skip
    assert played.verdict is night.Verdict.UNKNOWN
    assert time.monotonic() - began < 300


@pytest.mark.parametrize("program", ["pass", "print('well')", "print('[1]')", "print('{}')"])
def test_who_says_nothing_of_what_it_did_does_not_hold(program: str, tmp_path: Path) -> None:
    assert _play(program, tmp_path).verdict is night.Verdict.FAILED


def test_the_report_has_figures_and_the_end_of_what_failed(tmp_path: Path) -> None:
    failed = _play("import sys; print('{\"n\": 1234}'); sys.exit('seed 5: I1')", tmp_path)
    night.write_report(tmp_path, BEGAN, [failed])
    text = (tmp_path / "report.md").read_text()
    assert "# 1 turns from 2026-01-01T00:00:00+00:00, 1 of them do not hold" in text
    assert "n 1,234" in text
    assert "seed 5: I1" in text
    facts = json.loads((tmp_path / "report.json").read_text())
    assert facts["turns"][0]["verdict"] == "FAILED"
    assert facts["turns"][0]["figures"] == {"n": 1234}


@pytest.mark.parametrize("turn", night.ROUND, ids=lambda turn: " ".join(turn.words))
def test_each_turn_is_a_campaign_with_these_options(
    turn: night.Turn, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refuse an unknown option before the help is shown."""
    try:
        code: object = campaign([*night.fresh(turn), "--help"])
    except SystemExit as end:
        code = end.code
    assert code == 0
    assert "Usage: ./run soak" in capsys.readouterr().out


def test_seeds_are_fresh_and_aimed_ones_have_their_range() -> None:
    plain, aimed = night.Turn(("soak", "SEED")), night.Turn(("soak", "SEED"), aimed=True)
    drawn = {int(night.fresh(plain)[1]) for _ in range(20)}
    assert len(drawn) > 15
    assert max(drawn) < night.AIMED_FROM <= int(night.fresh(aimed)[1])
