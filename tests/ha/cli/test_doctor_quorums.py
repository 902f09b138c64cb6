"""nnha doctor on the journal and ZooKeeper: how many servers, how many may fail, full disks."""

from dataclasses import replace

import pytest

from ha.cluster.check_result import Finding, fail, ok, unknown, warn
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import LockView
from tests.ha.cli.test_cluster_view import GONE as REFUSED
from tests.ha.cli.test_cluster_view import SILENT, journals
from tests.ha.cli.test_doctor_cluster import ENSEMBLE, WELL, found_by


def changed(view: ClusterView, changes: dict[str, object]) -> ClusterView:
    return replace(view, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "losses", "enough"),
    [(1, 0, False), (2, 0, False), (3, 1, True), (4, 1, False), (5, 2, True)],
)
def test_an_odd_number_from_three_on_survives_losses(
    count: int, losses: int, *, enough: bool
) -> None:
    view = replace(
        WELL,
        journalnodes=tuple(
            replace(WELL.journalnodes[0], node=f"j{number}:1") for number in range(count)
        ),
        zookeepers=ENSEMBLE[:count],
    )
    (journal,) = found_by("journal size", view)
    (ensemble,) = found_by("ZooKeeper size", view)
    many = "" if count == 1 else "s"
    nodes = f"{count} JournalNode{many}, may lose {losses}"
    servers = f"{count} server{many}, may lose {losses}"
    if enough:
        assert journal == ok("journal size", nodes)
        assert ensemble == ok("ZooKeeper size", servers)
    else:
        assert journal == warn("journal size", nodes, "run 3 or 5 JournalNodes")
        assert ensemble == warn("ZooKeeper size", servers, "run 3 or 5 servers")


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        (("j1:1", "j2:1", "j3:1"), "each of 3 on its own"),
        (("j1:1", "j1:2", "j3:1"), "3 JournalNodes on 2 hosts"),
        (("j1:1", "j1:2", "j1:3"), "3 JournalNodes on 1 host"),
        (("[fd00::1]:1", "[fd00::2]:1", "[fd00::3]:1"), "each of 3 on its own"),
    ],
)
def test_journalnodes_that_share_a_host_are_told(nodes: tuple[str, ...], told: str) -> None:
    rows: list[dict[str, object]] = [{"node": node} for node in nodes]
    (found,) = found_by("journal hosts", changed(WELL, journals(*rows)))
    assert found.found == told


DOWN: dict[str, object] = {"error": REFUSED}
QUIET: dict[str, object] = {"error": SILENT}
UNHEARD_OF: dict[str, object] = {"node": "new:1", "error": SILENT}
"""A silent one that the active does not write to, either."""
RESTORE = "restore them before another one fails: nnha journal status"
MAJORITY: dict[str, tuple[list[dict[str, object]], int, Finding]] = {
    "all": ([], 3, ok("journal majority", "all 3 take part")),
    "one is silent, and in sync": (
        [QUIET],
        3,
        unknown("journal majority", f"j1:1: {SILENT}", "nnha journal status --timeout 10"),
    ),
    "one is gone": (
        [DOWN],
        3,
        fail("journal majority", f"can lose 0 more; j1:1: {REFUSED}", RESTORE),
    ),
    "one is gone, another not known": (
        [DOWN, UNHEARD_OF],
        3,
        fail(
            "journal majority",
            f"can lose at most 0 more; j1:1: {REFUSED}; new:1: {SILENT}",
            RESTORE,
        ),
    ),
    "of five one is gone, another not known": (
        [DOWN, UNHEARD_OF],
        5,
        fail(
            "journal majority",
            f"can lose at most 1 more; j1:1: {REFUSED}; new:1: {SILENT}",
            RESTORE,
        ),
    ),
    "two are gone": (
        [DOWN, DOWN],
        3,
        fail(
            "journal majority",
            f"j1:1: {REFUSED}; j2:1: {REFUSED}",
            "start them: nothing can be written",
        ),
    ),
}


@pytest.mark.parametrize(("rows", "count", "expected"), MAJORITY.values(), ids=MAJORITY)
def test_how_many_more_journalnodes_may_fail(
    rows: list[dict[str, object]], count: int, expected: Finding
) -> None:
    view = changed(WELL, journals(*rows))
    more = tuple(replace(WELL.journalnodes[0], node=f"j{number}:1") for number in range(4, 6))
    view = replace(view, journalnodes=(view.journalnodes + more)[:count])
    assert found_by("journal majority", view) == [expected]


ROOM = "make room now: a full disk stops the JournalNode"
DISKS: dict[str, tuple[int | None, int | None, Finding | None]] = {
    "neither is known": (None, None, None),
    "what is free is not": (None, 100, None),
    "the size is not": (10, None, None),
    "no size": (0, 0, None),
    "full": (0, 100, fail("disk of j1:1", "0% free", ROOM)),
    "nearly full": (4, 100, fail("disk of j1:1", "4% free", ROOM)),
    "not yet so full": (5, 100, warn("disk of j1:1", "5% free", "make room")),
    "filling": (19, 100, warn("disk of j1:1", "19% free", "make room")),
    "a fifth is free": (20, 100, ok("disk of j1:1", "20% free")),
}


@pytest.mark.parametrize(("free", "total", "expected"), DISKS.values(), ids=DISKS)
def test_how_full_a_journalnodes_disk_is(
    free: int | None, total: int | None, expected: Finding | None
) -> None:
    disk: dict[str, object] = {"disk_free_bytes": free, "disk_total_bytes": total}
    view = changed(WELL, journals(disk))
    assert found_by("disk of j1:1", view) == ([] if expected is None else [expected])


NO_SERVER = "no ZooKeeper server answers"
LOST = replace(ENSEMBLE[2], mode=None, error=REFUSED)
ZOOKEEPERS: dict[str, tuple[LockView, Finding]] = {
    "silent": (LockView(error=SILENT), unknown("ZooKeeper", SILENT, "nnha doctor --timeout 10")),
    "no quorum": (
        LockView(error=NO_SERVER),
        fail("ZooKeeper", NO_SERVER, "no failover is possible until it is back"),
    ),
    "one is down": (
        LockView(holder="nn1"),
        fail("ZooKeeper", f"z3:1: {REFUSED}", "restore them before another one fails"),
    ),
}


@pytest.mark.parametrize(("lock", "expected"), ZOOKEEPERS.values(), ids=ZOOKEEPERS)
def test_what_zookeeper_cannot_tell_counts_more_than_one_server(
    lock: LockView, expected: Finding
) -> None:
    view = replace(WELL, zookeepers=(*ENSEMBLE[:2], LOST), lock=lock)
    assert found_by("ZooKeeper", view) == [expected]


SERVERS = {
    "one is silent": (
        (None, None, SILENT),
        unknown("ZooKeeper", f"z3:1: {SILENT}", "nnha doctor --timeout 10"),
    ),
    "one is silent, and one is down": (
        (None, REFUSED, SILENT),
        fail(
            "ZooKeeper", f"z2:1: {REFUSED}; z3:1: {SILENT}", "restore them before another one fails"
        ),
    ),
    "all answer": ((None, None, None), ok("ZooKeeper", "3 of 3 servers answer")),
}


@pytest.mark.parametrize(("errors", "expected"), SERVERS.values(), ids=SERVERS)
def test_a_silent_server_is_not_known_to_be_down(
    errors: tuple[str | None, ...], expected: Finding
) -> None:
    servers = tuple(
        replace(server, error=error) for server, error in zip(ENSEMBLE[:3], errors, strict=True)
    )
    assert found_by("ZooKeeper", replace(WELL, zookeepers=servers)) == [expected]
