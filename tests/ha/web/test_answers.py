"""The three answers of the first screen, in each situation."""

from dataclasses import replace

import pytest

from ha.cluster.view import ClusterView, JournalNodeRow
from ha.web.answers import answers
from tests.ha.web.recorded import FILES
from tests.ha.web.situations import HEALTHY, SITUATIONS, with_files

TWO = replace(HEALTHY, namenodes=tuple(replace(one, state="active") for one in HEALTHY.namenodes))
NO_SPARE = replace(
    HEALTHY,
    journalnodes=(
        *HEALTHY.journalnodes[:2],
        JournalNodeRow("jn3", error="not running (connection refused)"),
    ),
)
SILENT_JOURNAL = replace(
    HEALTHY,
    namenodes=(replace(HEALTHY.namenodes[0], journal=()), HEALTHY.namenodes[1]),
    journalnodes=tuple(
        JournalNodeRow(one.node, error="no answer in 1 s") for one in HEALTHY.journalnodes
    ),
)
VIEWS = {
    **SITUATIONS,
    "two active": TWO,
    "by hand": replace(HEALTHY, automatic_failover=False, zkfcs=()),
    "no spare JournalNode": NO_SPARE,
    "silent journal": SILENT_JOURNAL,
    "no report of files": with_files(None),  # type: ignore[arg-type]
    "missing": with_files(replace(FILES, missing=1, under_replicated=7)),
    "no DataNode": with_files(replace(FILES, live_datanodes=0)),
    "too few replicas": with_files(replace(FILES, under_replicated=7, failed_volumes=2)),
    "silent DataNodes": with_files(replace(FILES, stale_datanodes=3)),
}
WANTED = {
    "healthy": ("good nn1", "good possible", "good not at risk"),
    "failover-under-way": (
        "warning none yet: nn2 takes over",
        "warning under way",
        "unknown not known",
    ),
    "nobody-active": ("bad none", "warning not possible", "unknown not known"),
    "zookeeper-away": ("good nn1", "warning not possible", "good not at risk"),
    "two-journalnodes-away": ("good nn1", "warning not possible", "bad cannot be written"),
    "paused": ("good nn1", "warning not possible", "good not at risk"),
    "drained": ("good nn1", "warning not possible", "good not at risk"),
    "loading": ("good nn1", "warning not possible", "good not at risk"),
    "learner": ("good nn1", "good possible", "warning at risk"),
    "data-at-risk": ("good nn1", "good possible", "bad cannot be read whole"),
    "nobody-answers": ("unknown not known", "unknown not known", "unknown not known"),
    "two active": ("bad nn1 and nn2 both", "warning not possible", "unknown not known"),
    "by hand": ("good nn1", "idle by hand", "good not at risk"),
    "no spare JournalNode": ("good nn1", "good possible", "warning at risk"),
    "silent journal": ("good nn1", "unknown not known", "unknown not known"),
    "no report of files": ("good nn1", "good possible", "unknown not known"),
    "missing": ("good nn1", "good possible", "bad cannot be read whole"),
    "no DataNode": ("good nn1", "good possible", "bad cannot be read whole"),
    "too few replicas": ("good nn1", "good possible", "warning at risk"),
    "silent DataNodes": ("good nn1", "good possible", "warning at risk"),
}


@pytest.mark.parametrize("name", WANTED)
def test_who_is_active_whether_a_failover_may_follow_and_whether_data_is_at_risk(name: str) -> None:
    view: ClusterView = VIEWS[name]
    assert tuple(f"{one.mark.kind} {one.mark.word}" for one in answers(view)) == WANTED[name]


MORE = {
    "healthy": ["since 18 Nov 10:30 UTC", "nn2 would be next", "all blocks have their replicas"],
    "two-journalnodes-away": [
        "but its reads wait: its lease has ended",
        "the journal has no quorum",
        "the journal has no quorum",
    ],
    "learner": [
        "since 18 Nov 10:30 UTC",
        "nn2 would be next",
        "the journal can lose no more nodes",
    ],
    "missing": ["since 18 Nov 10:30 UTC", "nn2 would be next", "1 block has no usable replica"],
    "no DataNode": ["since 18 Nov 10:30 UTC", "nn2 would be next", "no DataNode is heard"],
    "too few replicas": [
        "since 18 Nov 10:30 UTC",
        "nn2 would be next",
        "7 blocks have too few replicas; 2 failed volumes",
    ],
    "silent journal": [
        "since 18 Nov 10:30 UTC",
        "whether the journal has a quorum is not known",
        "whether the journal has a quorum",
    ],
}


@pytest.mark.parametrize("name", MORE)
def test_the_most_important_reason_is_added(name: str) -> None:
    assert [one.more for one in answers(VIEWS[name])] == MORE[name]
