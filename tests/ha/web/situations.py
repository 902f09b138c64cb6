"""Looks at a cluster in every bad state, as ``look_at`` gives them, without a cluster."""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from ha.cluster.daemon_fields import CheckpointView, DaemonView, HealthChange, TakeoverView
from ha.cluster.files_view import FilesView
from ha.cluster.unreachable import NOT_RUNNING
from ha.cluster.view import ClusterView, JournalNodeRow, JournalView, NameNodeRow, ZkfcRow
from ha.cluster.zookeeper_view import LockView, NoticesView, ZooKeeperRow
from ha.notices import model
from tests.ha.web.recorded import FILES, hour, many

NOW: Final = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)
SILENT: Final = "no answer in 1 s"
TXID: Final = 31_402_118
JOURNALS: Final = ("jn1.example:8485", "jn2.example:8485", "jn3.example:8485")


def daemon(pid: int) -> DaemonView:
    return DaemonView("0.2.0", "unknown", pid, "2026-11-18T10:11:02.004Z", "5ae2fbd1c0de0001", ())


def namenode(name: str, state: str) -> NameNodeRow:
    return NameNodeRow(
        name,
        f"{name}.example:8020",
        state=state,
        software="nnha",
        ready=True,
        epoch=7 if state == "active" else None,
        last_txid=TXID,
        journal=tuple(JournalView(node, in_sync=True, last_error=None) for node in JOURNALS)
        if state == "active"
        else (),
        files=FILES,
        activity=state,
        progress=1.0,
        checkpoint=CheckpointView(31_390_000, "2026-11-21T14:18:00.000Z", 12_118, None),
        daemon=daemon(4100),
    )


def zkfc(name: str, elector: str) -> ZkfcRow:
    return ZkfcRow(
        name,
        f"{name}.example:8019",
        health="healthy",
        elector=elector,
        zookeeper="connected",
        session_timeout_seconds=10.0,
        in_election=True,
        fencing_methods=("sshfence",),
        health_changes=(
            HealthChange("2026-11-21T14:02:30.000Z", "healthy", None),
            HealthChange("2026-11-21T14:00:10.000Z", "unhealthy", "it answers too late"),
            HealthChange("2026-11-18T10:11:03.000Z", "healthy", None),
        ),
        daemon=daemon(4200),
    )


def member(
    name: str, *, pause_seen: datetime | None = None, drain_seen: datetime | None = None
) -> model.Member:
    return model.Member(
        namenode=name,
        zkfc_http=f"{name}.example:8119",
        zkfc_rpc=f"{name}.example:8019",
        pid=4200,
        started=NOW - timedelta(days=3, hours=4),
        health="healthy",
        state="standby",
        ready=True,
        not_ready_reason="",
        nofailover=False,
        priority=100,
        in_election=True,
        out_because="",
        version="0.2.0",
        pause_seen=pause_seen,
        drain_seen=drain_seen,
    )


def record(
    number: int, previous: str, to: str, cause: str, phases: Mapping[str, float], **more: object
) -> model.HistoryEntry:
    entry = model.FailoverRecord(
        at=NOW - timedelta(days=3, hours=4) - timedelta(days=12 - number),
        namenode=to,
        cause=cause,
        actor=None,
        kind=model.FailoverKind.AUTO,
        result=model.FailoverResult.SUCCEEDED,
        failure=None,
        phases=tuple(model.PhaseDuration(name, seconds) for name, seconds in phases.items()),
        epoch=7,
        last_txid=TXID - 1000,
        previous=previous,
        fencing=(
            model.FencingAttempt(
                method="rpc", target=previous, result="failed", seconds=0.25,
                detail="it did not answer",
            ),
            model.FencingAttempt(
                method="sshfence", target=previous, result="succeeded", seconds=0.31, detail=""
            ),
        ),
        session="0x1000a2",
        lock_czxid=812,
    )  # fmt: skip
    return model.HistoryEntry(number, dataclasses.replace(entry, **more))  # type: ignore[arg-type]


HISTORY: Final = (
    record(
        12, "nn2", "nn1", "the process of nn2 ended, as its own zkfc saw",
        {"lock": 0.0, "fenced": 0.031, "promoting": 0.052, "active": 0.041},
    ),
    record(
        11, "nn1", "nn2", "alice asked for a switchover: new switch",
        {"lock": 0.0, "fenced": 0.012, "promoting": 0.048, "active": 0.037},
        kind=model.FailoverKind.SWITCHOVER, actor="alice",
    ),
    record(
        10, "nn2", "nn1", "nn2 stopped answering health checks",
        {"lock": 0.0, "failed": 0.61},
        result=model.FailoverResult.FAILED, failure="fencing failed: sshfence: no route to host",
    ),
)  # fmt: skip


HEALTHY: Final = ClusterView(
    nameservice="prod",
    taken_at=model.time_text(NOW),
    seconds=0.06,
    automatic_failover=True,
    namenodes=(namenode("nn1", "active"), namenode("nn2", "standby")),
    zkfcs=(zkfc("nn1", "active"), zkfc("nn2", "standby")),
    journalnodes=tuple(
        JournalNodeRow(
            node,
            formatted=True,
            learner=False,
            promised_epoch=7,
            writer_epoch=7,
            committed_txid=TXID,
            last_txid=TXID,
            disk_free_bytes=710 << 30,
            disk_total_bytes=1000 << 30,
            daemon=daemon(4300),
        )
        for node in JOURNALS
    ),
    zookeepers=(
        ZooKeeperRow("zk1.example:2181", mode="follower"),
        ZooKeeperRow("zk2.example:2181", mode="leader"),
        ZooKeeperRow("zk3.example:2181", mode="follower"),
    ),
    lock=LockView(holder="nn1", session_timeout_seconds=10.0),
    notices=NoticesView(members={"nn1": member("nn1"), "nn2": member("nn2")}, history=HISTORY),
    limit_seconds=1.0,
    hours={"nn1": hour("active", missing=range(70, 80)), "nn2": hour("standby")},
)

DOWN_NN1: Final = NameNodeRow("nn1", "nn1.example:8020", error=NOT_RUNNING)
ILL_ZKFC1: Final = replace(
    zkfc("nn1", "standby"),
    health="not_responding",
    health_reason="the process of nn1 (4100) has ended",
    elector="init",
    in_election=False,
    out_because="its NameNode is not responding",
    health_changes=(
        HealthChange("2026-11-21T14:29:59.700Z", "not_responding", "its process has ended"),
        *zkfc("nn1", "standby").health_changes,
    ),
)
UNDER_WAY: Final = replace(
    HEALTHY,
    hours={"nn1": HEALTHY.hours["nn1"].older(100.0), "nn2": HEALTHY.hours["nn2"]},
    namenodes=(DOWN_NN1, replace(namenode("nn2", "standby"), activity="recovering")),
    zkfcs=(
        ILL_ZKFC1,
        replace(
            zkfc("nn2", "taking over"),
            takeover=TakeoverView(
                13, 0.41, (model.PhaseDuration("lock", 0.0), model.PhaseDuration("fenced", 0.34))
            ),
        ),
    ),
    lock=LockView(holder="nn2", session_timeout_seconds=10.0),
)
PAUSED_AT: Final = NOW - timedelta(hours=1)


def silent(view: ClusterView) -> ClusterView:
    return replace(
        view,
        seconds=1.0,
        namenodes=tuple(
            NameNodeRow(one.namenode, one.address, error=SILENT) for one in view.namenodes
        ),
        zkfcs=tuple(ZkfcRow(one.namenode, one.address, error=SILENT) for one in view.zkfcs),
        journalnodes=tuple(JournalNodeRow(one.node, error=SILENT) for one in view.journalnodes),
        zookeepers=tuple(ZooKeeperRow(one.server, error=SILENT) for one in view.zookeepers),
        lock=LockView(error=f"{SILENT} from any ZooKeeper server"),
        notices=NoticesView(error=f"{SILENT} from any ZooKeeper server"),
        hours={},
    )


def with_files(files: FilesView) -> ClusterView:
    """Return the healthy cluster, whose active reports these."""
    nn1, nn2 = HEALTHY.namenodes
    return replace(HEALTHY, namenodes=(replace(nn1, files=files), nn2))


SITUATIONS: Final[Mapping[str, ClusterView]] = {
    "healthy": HEALTHY,
    "failover-under-way": UNDER_WAY,
    "nobody-active": replace(
        HEALTHY,
        namenodes=(
            DOWN_NN1,
            replace(
                namenode("nn2", "standby"),
                ready=False,
                not_ready_reason="the journal holds edits only up to 31,401,000",
            ),
        ),
        zkfcs=(
            ILL_ZKFC1,
            replace(
                zkfc("nn2", "standby"),
                last_failure="fencing failed: sshfence: no route to host",
            ),
        ),
        lock=LockView(holder=None, session_timeout_seconds=10.0),
    ),
    "zookeeper-away": replace(
        HEALTHY,
        zkfcs=tuple(replace(one, zookeeper="connection lost") for one in HEALTHY.zkfcs),
        zookeepers=tuple(ZooKeeperRow(one.server, error=NOT_RUNNING) for one in HEALTHY.zookeepers),
        lock=LockView(error="no ZooKeeper server answers"),
        notices=NoticesView(error="no ZooKeeper server answers"),
    ),
    "two-journalnodes-away": replace(
        HEALTHY,
        journalnodes=(
            HEALTHY.journalnodes[0],
            *(JournalNodeRow(node, error=NOT_RUNNING) for node in JOURNALS[1:]),
        ),
        namenodes=(
            replace(
                HEALTHY.namenodes[0],
                read_lease_valid=False,
                journal=tuple(
                    JournalView(node, in_sync=node == JOURNALS[0], last_error="connection refused")
                    for node in JOURNALS
                ),
            ),
            HEALTHY.namenodes[1],
        ),
    ),
    "paused": replace(
        HEALTHY,
        notices=replace(
            HEALTHY.notices,
            pause=model.Pause(
                owner="alice@ops1", reason="new switch", since=PAUSED_AT,
                until=NOW + timedelta(hours=1),
            ),
            members={
                name: member(name, pause_seen=PAUSED_AT) for name in ("nn1", "nn2")
            },
        ),
    ),
    "drained": replace(
        HEALTHY,
        zkfcs=(
            HEALTHY.zkfcs[0],
            replace(zkfc("nn2", "init"), in_election=False, out_because="it is drained"),
        ),
        notices=replace(
            HEALTHY.notices,
            drains={
                "nn2": model.Drain(
                    owner="bob@ops1", reason="memory to be added", since=PAUSED_AT, until=None
                )
            },
            members={"nn1": member("nn1"), "nn2": member("nn2", drain_seen=PAUSED_AT)},
        ),
    ),
    "loading": replace(
        HEALTHY,
        namenodes=(
            HEALTHY.namenodes[0],
            replace(
                namenode("nn2", "initializing"),
                last_txid=None,
                files=None,
                ready=False,
                not_ready_reason="it loads its image: 43 %",
                activity="loading",
                progress=0.43,
                checkpoint=None,
            ),
        ),
        zkfcs=(
            HEALTHY.zkfcs[0],
            replace(
                zkfc("nn2", "init"),
                health="initializing",
                in_election=False,
                out_because="its NameNode is still starting",
            ),
        ),
    ),
    "learner": replace(
        HEALTHY,
        journalnodes=(
            *HEALTHY.journalnodes[:2],
            replace(
                HEALTHY.journalnodes[2],
                learner=True,
                last_txid=TXID - 1_118,
                promised_epoch=0,
                disk_free_bytes=190 << 30,
                disk_warning="190 GB are free, less than dfs.journalnode.disk.warn-free-bytes",
                damaged_segments=(31_300_001,),
            ),
        ),
    ),
    "data-at-risk": with_files(
        replace(
            FILES, live_datanodes=199, stale_datanodes=2, dead_datanodes=1, failed_volumes=1,
            under_replicated=48_112, missing=2, datanodes=many(200, 8),
        )
    ),
    "nobody-answers": silent(HEALTHY),
}  # fmt: skip
