"""Looks at a cluster of two or three NameNodes, of which some are ill, for the plans of commands.

nn1 is active and holds the lock, the others are fit standbys, until a function here changes that.
"""

from dataclasses import replace
from typing import Final

from ha.cluster.unreachable import NOT_RUNNING
from ha.cluster.view import ClusterView, ZkfcRow
from ha.cluster.zookeeper_view import LockView, NoticesView
from ha.notices.model import Pause
from tests.ha.cli.test_cluster_view import SILENT, STANDBY, WELL, journals
from tests.ha.notices.test_model import NOON

NO_ROUTE: Final = "No route to host"
"""Nothing is known of such a process, although it was not silent."""
THREE: Final = replace(
    WELL,
    namenodes=(*WELL.namenodes, replace(STANDBY, namenode="nn3", address="h:5")),
    zkfcs=(*WELL.zkfcs, ZkfcRow("nn3", "h:6", health="healthy")),
)


def with_namenode(view: ClusterView, name: str, **changes: object) -> ClusterView:
    return replace(
        view,
        namenodes=tuple(
            replace(row, **changes) if row.namenode == name else row  # type: ignore[arg-type]
            for row in view.namenodes
        ),
    )


def with_zkfc(view: ClusterView, name: str, **changes: object) -> ClusterView:
    return replace(
        view,
        zkfcs=tuple(
            replace(row, **changes) if row.namenode == name else row  # type: ignore[arg-type]
            for row in view.zkfcs
        ),
    )


def without_answer(view: ClusterView, name: str, error: str = SILENT) -> ClusterView:
    return with_namenode(view, name, state=None, error=error)


def unready(view: ClusterView, name: str) -> ClusterView:
    return with_namenode(view, name, ready=False)


def paused(view: ClusterView) -> ClusterView:
    pause = Pause(owner="ann@ops1", reason="new switch", since=NOON, until=None)
    return replace(view, notices=NoticesView(pause=pause))


def by_hand(view: ClusterView) -> ClusterView:
    return replace(view, automatic_failover=False, zkfcs=(), zookeepers=(), lock=LockView())


ALL_SILENT: Final = replace(
    WELL,
    namenodes=tuple(replace(row, state=None, error=SILENT) for row in WELL.namenodes),
    zkfcs=tuple(replace(row, error=SILENT) for row in WELL.zkfcs),
    journalnodes=(),
    zookeepers=(),
    lock=LockView(error=SILENT),
)
UNREADY: Final = unready(WELL, "nn2")
"""The only other NameNode surely cannot take over."""
NOBODY: Final = replace(with_namenode(WELL, "nn1", state="standby"), lock=LockView())
"""No NameNode is active, and no ZKFC holds the lock."""
HUNG: Final = without_answer(WELL, "nn1")
"""The holder of the lock gives no answer, but its ZKFC does."""
GONE: Final = without_answer(WELL, "nn1", NOT_RUNNING)
"""The holder of the lock does not run, but its ZKFC does."""
JOURNAL_LOST: Final = replace(WELL, **journals({"error": NOT_RUNNING}, {"error": NOT_RUNNING}))  # type: ignore[arg-type]
JOURNAL_SILENT: Final = replace(
    with_namenode(WELL, "nn1", read_lease_valid=False),
    **journals({"error": SILENT}, {"error": SILENT}),  # type: ignore[arg-type]
)
"""Two of three JournalNodes answer neither us nor the active, whose read lease has ended."""
JOURNAL_HEARD: Final = with_namenode(JOURNAL_SILENT, "nn1", read_lease_valid=True)
"""They answer the active."""
JOURNAL_NOT_REPORTED: Final = with_namenode(
    JOURNAL_SILENT, "nn1", read_lease_valid=None, journal=()
)
"""They do not answer us, and the active, which may be Hadoop's, reports nothing of them."""
JOURNAL_ELSEWHERE: Final = with_namenode(JOURNAL_LOST, "nn1", read_lease_valid=True)
"""From here their ports are closed, and they answer the active."""
