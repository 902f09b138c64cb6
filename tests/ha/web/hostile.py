"""A cluster whose names, reasons and records are all meant to harm who looks at them."""

from dataclasses import replace
from typing import Final

from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import NoticesView
from ha.notices.model import Pause
from tests.ha.web.situations import DOWN_NN1, HEALTHY, HISTORY, NOW, record

HOSTILE: Final = "<script>alert(1)</script>\"'&\u202e" + "x" * 10_000
HOSTILE_PAGES: Final = ("/", "/history", "/failover/13", "/node/n%3Cn%3E2")


def hostile_view() -> ClusterView:
    pause = Pause(owner=HOSTILE, reason=HOSTILE, since=NOW, until=None)
    entry = record(13, HOSTILE, HOSTILE, HOSTILE, {HOSTILE: 1.0}, actor=HOSTILE, failure=HOSTILE)
    return replace(
        HEALTHY,
        nameservice=HOSTILE,
        namenodes=(
            replace(HEALTHY.namenodes[0], note=HOSTILE),
            replace(DOWN_NN1, namenode="n<n>2", error=HOSTILE),
        ),
        zkfcs=(HEALTHY.zkfcs[0], replace(HEALTHY.zkfcs[1], namenode="n<n>2", health=HOSTILE)),
        journalnodes=(replace(HEALTHY.journalnodes[0], node=HOSTILE, failed_because=HOSTILE),),
        notices=NoticesView(pause=pause, history=(entry, *HISTORY), unreadable=(HOSTILE,)),
    )
