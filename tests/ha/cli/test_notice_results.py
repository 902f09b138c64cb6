"""How pausing, resuming and draining may end, and which ZKFCs have seen the notice by then."""

from dataclasses import replace

import pytest

from ha.cli.operate.plan import notice_results
from ha.cli.operate.plan.notice_results import seen
from ha.console.result import Code, CommandOutcome, Reason
from ha.notices.model import BadNotice
from tests.ha.notices.test_model import MEMBER


@pytest.mark.parametrize(
    ("running", "who"),
    [
        (0, "no ZKFC is running"),
        (1, "the only running ZKFC has seen it"),
        (2, "all 2 running ZKFCs have seen it"),
        (3, "all 3 running ZKFCs have seen it"),
    ],
)
def test_it_is_done_once_all_running_zkfcs_show_it(running: int, who: str) -> None:
    ending = seen("pause", "paused for 2h", running=running, lacking={})
    assert (ending.command, ending.target) == ("pause", None)
    assert (ending.outcome, ending.code) == (CommandOutcome.DONE, Code.DONE)
    assert ending.message == f"paused for 2h ({who})"


def test_who_does_not_show_it_yet_is_named_with_its_process_or_with_what_its_znode_has() -> None:
    lacking: notice_results.Members = {
        "nn1": replace(MEMBER, pid=42),
        "nn2": BadNotice("no member: b'junk'"),
    }
    ending = seen("drain", "nn1 is drained", running=3, lacking=lacking, target="nn1")
    assert (ending.command, ending.target) == ("drain", "nn1")
    assert (ending.outcome, ending.code) == (CommandOutcome.FAILED, Code.NOT_SEEN_BY_ALL)
    assert "of 3 running ZKFCs, 2 do not show it yet" in ending.message
    assert ending.reasons == (
        Reason("nn1", "its ZKFC (process 42) does not show it yet"),
        Reason("nn2", "no member: b'junk'"),
    )


@pytest.mark.parametrize(
    ("holds", "told", "then"),
    [
        (True, "do not show it yet", "they will obey once they have read it"),
        (False, "it is over, or another request has taken its place", "see what holds now"),
    ],
)
def test_of_what_holds_no_more_nobody_is_said_to_obey_it(
    *, holds: bool, told: str, then: str
) -> None:
    lacking: notice_results.Members = {"nn1": MEMBER}
    ending = seen("pause", "paused", running=1, lacking=lacking, holds=holds)
    assert ending.message.endswith(told)
    assert then in ending.hint


def test_without_zkfcs_there_is_nobody_to_obey() -> None:
    ending = notice_results.not_automatic("pause")
    assert (ending.command, ending.code) == ("pause", Code.NOT_AUTOMATIC)
    assert ending.outcome is CommandOutcome.REFUSED
