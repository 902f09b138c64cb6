"""A cluster moves from Hadoop's daemons to ours and back, one daemon at a time, while it serves.

The order is that of docs/migration.md.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.cluster import state
from deploy.local.cluster.cluster import zkfc_of
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES, NAMESERVICE
from deploy.local.cluster.processes import wait_until
from deploy.local.demo.stage import ask_for_failover
from deploy.local.workload.trial import other
from tests.interop.mixed.cluster import MixedCluster
from tests.interop.mixed.programs import JOURNAL_HOSTS, Kind

VOTE_SECONDS = 180.0
"""A learner under Hadoop's writer votes after two log rolls and ``CLAIM_SECONDS``."""
CLAIM_SECONDS = 10
_IN_PROGRESS: Final = "edits_inprogress_"


@dataclass(frozen=True, slots=True)
class Step:
    """One daemon to be replaced."""

    part: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.part} becomes {'ours' if self.kind is Kind.OURS else 'one of Hadoop'}"


def journal_steps(kind: Kind) -> Iterator[Step]:
    yield from (Step(name, kind) for name in JOURNALNODES)


def zkfc_steps(cluster: MixedCluster, kind: Kind) -> Iterator[Step]:
    """Yield the standby's ZKFC first; the second step begins with a hand-over to it."""
    active = cluster.active()
    yield from (Step(zkfc_of(name), kind) for name in (other(active), active))


def namenode_steps(cluster: MixedCluster, kind: Kind) -> Iterator[Step]:
    """Yield the standby first; the second step begins with a hand-over to it."""
    active = cluster.active()
    yield from (Step(name, kind) for name in (other(active), active))


def datanode_steps(cluster: MixedCluster, kind: Kind) -> Iterator[Step]:
    yield from (Step(name, kind) for name in cluster.layout.datanodes)


def play(cluster: MixedCluster, step: Step) -> None:
    """Replace one daemon, and wait until the cluster is as redundant as before.

    Raises:
        LocalClusterError: it is not within the time that it may take; the message says what lacks.
    """
    if step.part in JOURNALNODES:
        _move_journalnode(cluster, step)
    elif step.part in NAMENODES:
        _move_namenode(cluster, step)
    elif step.part in cluster.layout.datanodes:
        cluster.stop(step.part)
        cluster.start_datanode(step.part, step.kind)
    else:
        _move_zkfc(cluster, step)


def wipe_journalnode(cluster: MixedCluster, name: str) -> None:
    """Wipe one of ours, format it as docs/journal.md says, and wait until it votes again."""
    cluster.kill(name)
    shutil.rmtree(cluster.layout.edits_dir(name))
    cluster.start_journalnode(name, Kind.OURS)
    node = f"{JOURNAL_HOSTS[name]}:{cluster.programs.grpc_port}"
    cluster.finish(f"format-{name}", cluster.programs.ours("journal format", "--node", node))
    roll(cluster)
    wait_for_vote(cluster, name)


def roll(cluster: MixedCluster) -> None:
    """End the open segment: Hadoop's writer takes a node back at the beginning of the next one."""
    cluster.finish("roll-edits", cluster.programs.hadoop("dfsadmin", "-rollEdits"))


def wait_for_vote(cluster: MixedCluster, name: str) -> None:
    def votes() -> bool:
        journal = journal_facts(cluster, name)
        return journal is not None and journal.get("learner") is False

    try:
        wait_until(votes, what=f"{name} to have a vote", deadline_seconds=VOTE_SECONDS)
    except LocalClusterError as late:
        raise LocalClusterError(
            f"{late}. It is a learner; under Hadoop's writer the other JournalNodes must let it "
            f"vote again. What it says of itself: {journal_facts(cluster, name)}"
        ) from late


def wait_until_written(cluster: MixedCluster, name: str) -> None:
    peers = [peer for peer in JOURNALNODES if peer != name]

    def has_the_same() -> bool:
        others = [_open_segment(cluster, peer) for peer in peers]
        return _open_segment(cluster, name) in others and None not in others

    wait_until(
        has_the_same,
        what=f"{name} to have the segment that {' and '.join(peers)} write",
        deadline_seconds=VOTE_SECONDS,
        poll_seconds=0.1,
    )


def journal_facts(cluster: MixedCluster, name: str) -> Mapping[str, object] | None:
    facts = state.status(cluster.programs.journal_url(name)) or {}
    journals = facts.get("journals")
    found = journals.get(NAMESERVICE) if isinstance(journals, dict) else None
    return found if isinstance(found, dict) else None


def _open_segment(cluster: MixedCluster, name: str) -> str | None:
    current: Path = cluster.layout.edits_dir(name) / NAMESERVICE / "current"
    open_ones = sorted(path.name for path in current.glob(f"{_IN_PROGRESS}*[0-9]"))
    return open_ones[-1] if open_ones else None


def _move_journalnode(cluster: MixedCluster, step: Step) -> None:
    cluster.stop(step.part)
    cluster.start_journalnode(step.part, step.kind)
    roll(cluster)
    if step.kind is Kind.OURS:
        wait_for_vote(cluster, step.part)
    wait_until_written(cluster, step.part)


def _move_zkfc(cluster: MixedCluster, step: Step) -> None:
    namenode = step.part.removeprefix("zkfc-")
    _hand_over_from(cluster, namenode)
    cluster.stop(step.part)
    cluster.start_zkfc(namenode, step.kind)
    cluster.wait_for_pair()


def _move_namenode(cluster: MixedCluster, step: Step) -> None:
    _hand_over_from(cluster, step.part)
    cluster.stop(step.part)
    cluster.start_namenode(step.part, step.kind)


def _hand_over_from(cluster: MixedCluster, namenode: str) -> None:
    """Hadoop's ZKFC keeps its lock until its session ends, seconds after it was stopped."""
    if cluster.active() == namenode:
        ask_for_failover(cluster.programs.our_conf_dir, namenode, other(namenode))
        cluster.wait_for_ready_standby(namenode)
