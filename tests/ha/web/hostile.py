"""A cluster whose names, reasons and records are all meant to harm who looks at them."""

from dataclasses import replace
from typing import Final

from ha.cluster.files_view import DatanodeView, VolumeView
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import NoticesView
from ha.notices.model import Pause
from tests.ha.web.recorded import FILES, hour
from tests.ha.web.situations import DOWN_NN1, HEALTHY, HISTORY, NOW, record

HOSTILE: Final = "<script>alert(1)</script>\"'&\u202e" + "x" * 10_000
HOSTILE_PAGES: Final = ("/", "/datanodes", "/history", "/failover/13", "/node/n%3Cn%3E2")


def hostile_view() -> ClusterView:
    pause = Pause(owner=HOSTILE, reason=HOSTILE, since=NOW, until=None)
    entry = record(13, HOSTILE, HOSTILE, HOSTILE, {HOSTILE: 1.0}, actor=HOSTILE, failure=HOSTILE)
    volume = VolumeView(HOSTILE, HOSTILE, True, 10, 5, 5, 0)
    node = DatanodeView(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1e9, 0, 1, (volume,), HOSTILE, HOSTILE, 7, HOSTILE
    )
    files = replace(FILES, datanodes=(node, replace(node, uuid="2", state="live")))
    return replace(
        HEALTHY,
        nameservice=HOSTILE,
        hours={HOSTILE: hour("active"), "nn2": hour("standby", started=60.0)},
        namenodes=(
            replace(HEALTHY.namenodes[0], note=HOSTILE, files=files),
            replace(DOWN_NN1, namenode="n<n>2", error=HOSTILE),
        ),
        zkfcs=(HEALTHY.zkfcs[0], replace(HEALTHY.zkfcs[1], namenode="n<n>2", health=HOSTILE)),
        journalnodes=(replace(HEALTHY.journalnodes[0], node=HOSTILE, failed_because=HOSTILE),),
        notices=NoticesView(pause=pause, history=(entry, *HISTORY), unreadable=(HOSTILE,)),
    )
