"""Which NameNodes could become active, in which order, and what keeps the others, as tables."""

from dataclasses import replace

import pytest

from ha.cluster.candidates import (
    Bars,
    Candidate,
    Obstacle,
    Readiness,
    candidates_of,
    failover_blockers,
    ranked,
    readiness,
    start_namenode,
)
from ha.cluster.unreachable import NOT_RUNNING
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import LockView, NoticesView
from tests.ha.cli import plan_views as views
from tests.ha.cli.plan_views import paused
from tests.ha.cli.test_cluster_view import ACTIVE, SILENT, STANDBY, WELL, journals
from tests.ha.notices.test_model import MEMBER, PAUSE

KNOWN = Obstacle("it is drained", "end the drain")
MAYBE = Obstacle("it is silent", "ask again", known=False)
HOPELESS = Obstacle("it is an observer", "")


def candidate(*obstacles: Obstacle, lag: int | None = 0) -> Candidate:
    return Candidate("nn2", active=False, obstacles=obstacles, priority=100, lag=lag)


@pytest.mark.parametrize(
    ("obstacles", "fit", "unfit", "unknown"),
    [
        ((), True, False, False),
        ((KNOWN,), False, True, False),
        ((MAYBE,), False, False, True),
        ((KNOWN, MAYBE), False, True, False),
    ],
    ids=["nothing is in its way", "something is", "something may be", "both"],
)
def test_a_candidate_is_fit_or_unfit_or_nobody_knows(
    obstacles: tuple[Obstacle, ...], *, fit: bool, unfit: bool, unknown: bool
) -> None:
    one = candidate(*obstacles)
    assert (one.fit, one.unfit, one.unknown) == (fit, unfit, unknown)


@pytest.mark.parametrize(
    ("bars", "switchable", "callable_"),
    [
        ([], True, True),
        ([Bars.FOR_NOW], True, True),
        ([Bars.ELECTION], True, False),
        ([Bars.ELECTION, Bars.FOR_NOW], True, False),
        ([Bars.EVERYTHING], False, False),
        ([Bars.EVERYTHING, Bars.ELECTION, Bars.FOR_NOW], False, False),
    ],
)
def test_each_obstacle_must_let_it_pass(
    bars: list[Bars], *, switchable: bool, callable_: bool
) -> None:
    one = candidate(*(replace(KNOWN, bars=each) for each in bars))
    assert (one.switchable, one.callable) == (switchable, callable_)


@pytest.mark.parametrize(
    ("obstacles", "helps"),
    [
        ((), ""),
        ((HOPELESS,), ""),
        ((KNOWN, MAYBE), "end the drain"),
        ((HOPELESS, MAYBE), "ask again"),
    ],
    ids=["nothing need help", "nothing helps", "the first", "the first that can be helped"],
)
def test_what_helps(obstacles: tuple[Obstacle, ...], helps: str) -> None:
    assert candidate(*obstacles).what_helps() == helps


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (candidate(lag=None), "fit: lag unknown, priority 100"),
        (candidate(lag=0), "fit: up to date, priority 100"),
        (candidate(lag=1), "fit: 1 transaction behind, priority 100"),
        (candidate(lag=2), "fit: 2 transactions behind, priority 100"),
        (candidate(lag=31_402), "fit: 31,402 transactions behind, priority 100"),
        (candidate(KNOWN, MAYBE), "it is drained; it is silent"),
    ],
)
def test_a_candidate_in_words(one: Candidate, words: str) -> None:
    assert one.in_words() == words


def standbys(*lags: int | None) -> ClusterView:
    """Return the active and standbys nn2, nn3 and so on with these lags; None: unknown."""
    rows = tuple(
        replace(STANDBY, namenode=f"nn{number}", last_txid=None if lag is None else 5000 - lag)
        for number, lag in enumerate(lags, start=2)
    )
    return replace(WELL, namenodes=(ACTIVE, *rows))


@pytest.mark.parametrize(
    ("view", "order"),
    [
        (standbys(0, 0), ["nn2", "nn3"]),
        (standbys(1, 0), ["nn3", "nn2"]),
        (standbys(None, 10), ["nn3", "nn2"]),
        (standbys(None, 10, 0), ["nn4", "nn3", "nn2"]),
        (standbys(None, None), ["nn2", "nn3"]),
        (
            replace(
                standbys(0, 10),
                notices=NoticesView(members={"nn3": replace(MEMBER, priority=101)}),
            ),
            ["nn3", "nn2"],
        ),
        (views.unready(standbys(0, 0), "nn2"), ["nn3"]),
    ],
    ids=[
        "equals, as configured",
        "the nearer one",
        "who does not tell comes last",
        "three",
        "two that do not tell",
        "a priority is above all",
        "who is not fit is none",
    ],
)
def test_ranked(view: ClusterView, order: list[str]) -> None:
    assert [one.namenode for one in ranked(view)] == order


NOBODY_KNOWS_THE_JOURNAL = replace(
    WELL,
    namenodes=(replace(ACTIVE, journal=()), STANDBY),
    **journals({"error": SILENT}, {"error": SILENT}),  # type: ignore[arg-type]
)


@pytest.mark.parametrize(
    ("view", "expected", "reasons"),
    [
        (WELL, Readiness.READY, []),
        (views.UNREADY, Readiness.BLOCKED, ["nn2: NameNode: not ready: it gives no reason"]),
        (views.without_answer(WELL, "nn2"), Readiness.UNKNOWN, [f"nn2: NameNode: {SILENT}"]),
        (views.by_hand(WELL), Readiness.BLOCKED, ["dfs.ha.automatic-failover.enabled is not set"]),
        (paused(WELL), Readiness.BLOCKED, ["paused by ann@ops1 until it is ended: new switch"]),
        (
            NOBODY_KNOWS_THE_JOURNAL,
            Readiness.UNKNOWN,
            ["whether the journal has a quorum is not known"],
        ),
        (
            views.JOURNAL_SILENT,
            Readiness.UNKNOWN,
            ["whether the journal has a quorum is not known"],
        ),
        (views.JOURNAL_HEARD, Readiness.READY, []),
        (
            views.JOURNAL_LOST,
            Readiness.BLOCKED,
            ["the journal has no quorum"],
        ),
        (
            replace(WELL, lock=LockView(error=SILENT)),
            Readiness.UNKNOWN,
            [f"ZooKeeper: {SILENT}"],
        ),
        (
            replace(WELL, lock=LockView(error="not formatted")),
            Readiness.BLOCKED,
            ["ZooKeeper: not formatted"],
        ),
        (views.unready(views.THREE, "nn2"), Readiness.READY, []),
        (
            views.unready(views.without_answer(views.THREE, "nn2"), "nn3"),
            Readiness.UNKNOWN,
            [f"nn2: NameNode: {SILENT}", "nn3: NameNode: not ready: it gives no reason"],
        ),
        (
            replace(WELL, namenodes=(ACTIVE,)),
            Readiness.BLOCKED,
            ["there is no other NameNode"],
        ),
    ],
    ids=[
        "one could take over",
        "the only other one cannot",
        "the only other one is silent",
        "failover is by hand",
        "paused",
        "the journal is silent",
        "the journal is silent, and the active's read lease has ended",
        "the journal answers the active alone",
        "the journal is lost",
        "ZooKeeper is silent",
        "ZooKeeper refuses",
        "one of two could",
        "one of two may",
        "there is no other",
    ],
)
def test_readiness_and_what_blocks(
    view: ClusterView, expected: Readiness, reasons: list[str]
) -> None:
    assert readiness(view) is expected
    assert list(failover_blockers(view)) == reasons


DRAINED = replace(WELL, notices=NoticesView(drains={"nn2": PAUSE}))
IS_DRAINED = "drained by ann@ops1 until 2026-05-01T14:00:00.000Z: new switch"
OUT = {"in_election": False, "out_because": "asked to cede"}


def ill(view: ClusterView, reason: str | None) -> ClusterView:
    """Return a look in which the ZKFC of nn2 finds its NameNode unhealthy."""
    return views.with_zkfc(view, "nn2", health="unhealthy", health_reason=reason)


@pytest.mark.parametrize(
    ("view", "texts"),
    [
        (WELL, []),
        (DRAINED, [IS_DRAINED]),
        (
            views.with_namenode(WELL, "nn2", state="observer"),
            ["it is an observer, and observers are never candidates"],
        ),
        (
            views.with_namenode(WELL, "nn2", state="initializing"),
            ["NameNode: it is still starting"],
        ),
        (
            views.with_namenode(WELL, "nn2", ready=False, not_ready_reason="no journal"),
            ["NameNode: not ready: no journal"],
        ),
        (views.with_zkfc(WELL, "nn2", health=None), []),
        (ill(WELL, None), ["ZKFC: judges the NameNode unhealthy"]),
        (ill(WELL, "it is slow"), ["ZKFC: judges the NameNode unhealthy (it is slow)"]),
        (ill(views.without_answer(WELL, "nn2"), None), [f"NameNode: {SILENT}"]),
        (
            ill(views.with_namenode(WELL, "nn2", ready=False, not_ready_reason="no journal"), None),
            ["NameNode: not ready: no journal", "ZKFC: judges the NameNode unhealthy"],
        ),
        (views.with_zkfc(WELL, "nn2", **OUT), ["ZKFC: not in the election: asked to cede"]),
        (
            views.with_zkfc(WELL, "nn2", in_election=False),
            ["ZKFC: not in the election: it gives no reason"],
        ),
        (views.with_zkfc(DRAINED, "nn2", **OUT), [IS_DRAINED]),
        (views.with_zkfc(paused(WELL), "nn2", **OUT), []),
        (
            views.with_zkfc(
                WELL, "nn2", in_election=False, out_because="nn1 has the higher rank: priority 110"
            ),
            [],
        ),
        (
            views.with_zkfc(
                WELL, "nn2", in_election=False, out_because="nnha.candidate.nofailover is set"
            ),
            [],
        ),
        (
            views.with_zkfc(
                WELL,
                "nn2",
                in_election=False,
                out_because="our NameNode is not ready to become active",
            ),
            [],
        ),
        (views.by_hand(WELL), []),
    ],
    ids=[
        "well",
        "drained",
        "an observer",
        "starting",
        "not ready",
        "its ZKFC does not tell its health",
        "ill without a reason",
        "ill",
        "silent, and so ill",
        "not ready, and ill",
        "out",
        "out without a reason",
        "out as it is drained",
        "out in a pause",
        "out as another is preferred",
        "out as it never stands",
        "out as it is not ready",
        "failover is by hand",
    ],
)
def test_obstacles(view: ClusterView, texts: list[str]) -> None:
    (found,) = (one for one in candidates_of(view) if one.namenode == "nn2")
    assert [one.text for one in found.obstacles] == texts


def test_the_active_need_not_be_ready() -> None:
    view = views.with_namenode(WELL, "nn1", ready=False, not_ready_reason="it is active")
    assert candidates_of(view)[0].fit


def test_a_switchover_passes_nofailover() -> None:
    members = {"nn2": replace(MEMBER, nofailover=True)}
    (found,) = candidates_of(replace(WELL, notices=NoticesView(members=members)))[1].obstacles
    assert (found.bars, found.next) == (Bars.ELECTION, "nnha switchover nn2")


@pytest.mark.parametrize(
    ("error", "helps", "known"),
    [
        (NOT_RUNNING, "start it on h: nnha namenode -D dfs.ha.namenode.id=nn2", True),
        ("answers with an error: HTTP 500", "see its log on h", True),
        (SILENT, "ask again with more time", False),
        (views.NO_ROUTE, "see whether h is up, and the way to it open", False),
    ],
    ids=["not running", "an error", "silent", "no way to it"],
)
def test_what_helps_against_an_absence(error: str, helps: str, *, known: bool) -> None:
    (found,) = candidates_of(views.without_answer(WELL, "nn2", error))[1].obstacles
    assert found.text == f"NameNode: {error}"
    assert found.next.startswith(helps)
    assert found.known is known


def test_a_zkfc_that_does_not_run_is_to_be_started_on_its_host() -> None:
    (found,) = candidates_of(views.with_zkfc(WELL, "nn2", error=NOT_RUNNING, health=None))[
        1
    ].obstacles
    assert found == Obstacle(
        f"ZKFC: {NOT_RUNNING}", "start it on h: nnha zkfc -D dfs.ha.namenode.id=nn2"
    )


@pytest.mark.parametrize(
    ("softwares", "told", "not_told"),
    [
        (("nnha", "nnha"), "start it on h: nnha namenode", "hdfs"),
        (("Hadoop 3.4.1", "Hadoop 3.4.1"), "hdfs --daemon start namenode", "nnha namenode"),
        (("nnha", "Hadoop 3.4.1"), "hdfs --daemon start namenode", "nnha namenode"),
    ],
    ids=["ours run", "Hadoop's run", "one of each runs"],
)
def test_a_namenode_is_started_by_the_software_of_its_name_directory(
    softwares: tuple[str, str], told: str, not_told: str
) -> None:
    view = views.without_answer(views.THREE, "nn2", NOT_RUNNING)
    for name, software in zip(("nn1", "nn3"), softwares, strict=True):
        view = views.with_namenode(view, name, software=software)
    text = start_namenode(view, view.namenodes[1])
    assert told in text
    assert not_told not in text


def test_where_no_namenode_runs_both_softwares_are_told() -> None:
    view = views.without_answer(views.without_answer(WELL, "nn1", NOT_RUNNING), "nn2", NOT_RUNNING)
    text = start_namenode(view, view.namenodes[1])
    assert "nnha namenode -D" in text
    assert "hdfs --daemon start namenode" in text


def test_a_host_may_be_an_ipv6_address() -> None:
    row = replace(STANDBY, address="[fe80::1]:8020")
    assert start_namenode(WELL, row).startswith("start it on [fe80::1]: ")
