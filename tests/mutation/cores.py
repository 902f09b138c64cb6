"""The pure cores: their files, the fast tests of each, and the worlds that run it."""

from dataclasses import dataclass
from typing import Final

_JOURNAL: Final = (
    "tests/journal/core",
    "tests/journal/test_quorum.py",
    "tests/journal/test_recovery.py",
    "tests/simulation/journal/test_found.py",
    "tests/simulation/journal/test_tables.py",
    "tests/simulation/journal/test_voters_word.py",
    "tests/simulation/journal/test_writers.py",
    "tests/simulation/journal/test_learners.py",
)
_WRITER: Final = (
    "tests/journal/test_quorum.py",
    "tests/journal/test_recovery.py",
    "tests/journal/test_lease.py",
    "tests/journal/writer/test_window.py",
    "tests/journal/writer/test_epoch_claim.py",
    "tests/journal/writer/test_lease.py",
)
_ELECTION: Final = ("tests/ha/elector", "tests/ha/zkfc")
"""Those that need a real ZooKeeper are left out, as everywhere."""
NO_WORLDS: Final = ""


@dataclass(frozen=True, slots=True)
class Core:
    """One core.

    Attributes:
        files: from the root.
        tests: files and folders of tests; those that need a real ZooKeeper are left out, and those
            that do not run a changed line as well.
        worlds: the package of the simulation that runs it, or NO_WORLDS.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    worlds: str


CORES: Final[dict[str, Core]] = {
    "elector": Core(
        ("ha/elector/core.py", "ha/elector/term.py", "ha/elector/invariants.py"),
        _ELECTION,
        "failover",
    ),
    "takeover": Core(
        (
            "ha/elector/takeover.py",
            "ha/zkfc/takeover/takeover.py",
            "ha/zkfc/takeover/former_active.py",
            "ha/zkfc/takeover/superseded.py",
            "ha/zkfc/takeover/planned_fence.py",
        ),
        _ELECTION,
        "failover",
    ),
    "candidacy": Core(
        (
            "ha/zkfc/candidacy/core.py",
            "ha/zkfc/candidacy/eligibility.py",
            "ha/zkfc/candidacy/failback.py",
            "ha/zkfc/candidacy/failover_obstacle.py",
            "ha/zkfc/candidacy/flapping.py",
            "ha/zkfc/candidacy/state.py",
        ),
        _ELECTION,
        "failover",
    ),
    "fencing": Core(
        (
            "fencing/environment.py",
            "fencing/fencer.py",
            "fencing/model.py",
            "fencing/spec.py",
            "fencing/ssh_verdict.py",
        ),
        ("tests/fencing", "tests/ha/zkfc/test_victims.py", "tests/ha/zkfc/test_predecessor.py"),
        "failover",
    ),
    "witness": Core(
        ("ha/zkfc/witness/core.py", "ha/zkfc/guard/core.py", "journal/silence.py"),
        (*_ELECTION, "tests/journal/test_silence.py"),
        "failover",
    ),
    "health": Core(("ha/health/core.py",), ("tests/ha/health", *_ELECTION), "failover"),
    "role": Core(
        ("namenode_sim/term/role.py", "namenode_sim/term/gate.py"),
        ("tests/namenode_sim/term",),
        "blocks",
    ),
    "journal": Core(
        (
            "journal/core/admission.py",
            "journal/core/limits.py",
            "journal/core/machine.py",
            "journal/core/segments.py",
            "journal/core/state.py",
            "journal/core/usual_batch.py",
        ),
        _JOURNAL,
        "journal",
    ),
    "journal-recovery": Core(
        ("journal/recovery.py", "journal/core/recovery.py", "journal/core/rejoin.py"),
        _JOURNAL,
        "journal",
    ),
    "journal-members": Core(
        (
            "journal/core/learner.py",
            "journal/core/purge.py",
            "journal/core/sync.py",
            "journal/core/upgrade.py",
            "journal/core/voters.py",
        ),
        _JOURNAL,
        "journal",
    ),
    "quorum": Core(("journal/quorum.py", "journal/lease.py"), _WRITER, "journal"),
    "window": Core(
        ("journal/writer/window.py",),
        ("tests/journal/writer/test_window.py", "tests/journal/writer/test_window_life.py"),
        "journal",
    ),
    "claim": Core(("journal/writer/epoch_claim.py",), _WRITER, "journal"),
    "blocks": Core(
        (
            "namenode_sim/blocks/commit.py",
            "namenode_sim/blocks/doomed.py",
            "namenode_sim/blocks/follow.py",
            "namenode_sim/blocks/invalidations.py",
            "namenode_sim/blocks/judge.py",
            "namenode_sim/blocks/needed.py",
            "namenode_sim/blocks/reports.py",
            "namenode_sim/blocks/safemode.py",
            "namenode_sim/blocks/waiting.py",
        ),
        ("tests/namenode_sim/blocks", "tests/namenode_sim/datanodes"),
        "blocks",
    ),
    "reading": Core(
        (
            "journal/reader/audit.py",
            "journal/reader/frame_stream.py",
            "journal/reader/manifest.py",
            "journal/reader/vouching.py",
            "journal/storage/layout.py",
            "journal/storage/small_files.py",
        ),
        ("tests/journal/reader", "tests/journal/storage"),
        "journal",
    ),
    "znodes": Core(
        (
            "ha/elector/zookeeper/answers.py",
            "ha/elector/zookeeper/breadcrumb.py",
            "ha/elector/zookeeper/review.py",
            "ha/elector/zookeeper/rights.py",
            "ha/elector/zookeeper/session_ticket.py",
        ),
        _ELECTION,
        "failover",
    ),
    "rights": Core(
        ("ha/security/decision.py", "ha/security/audit_rate.py"),
        ("tests/ha/security", "tests/security"),
        NO_WORLDS,
    ),
    "plans": Core(
        (
            "ha/cli/operate/plan/drain.py",
            "ha/cli/operate/plan/handover.py",
            "ha/cli/operate/plan/notice_results.py",
            "namenode_sim/startup/prepare/core.py",
        ),
        ("tests/ha/cli", "tests/namenode_sim/startup"),
        NO_WORLDS,
    ),
    "leases": Core(
        (
            "namenode_sim/leases/expiry.py",
            "namenode_sim/leases/release.py",
            "namenode_sim/leases/taking.py",
        ),
        ("tests/namenode_sim/leases", "tests/namenode_sim/client_protocol"),
        "whole",
    ),
    "redundancy": Core(
        (
            "namenode_sim/datanodes/excess_choice.py",
            "namenode_sim/datanodes/judging.py",
            "namenode_sim/datanodes/pending.py",
            "namenode_sim/datanodes/placement.py",
            "namenode_sim/datanodes/reconstruction.py",
            "namenode_sim/datanodes/recovery.py",
            "namenode_sim/datanodes/redundancy.py",
        ),
        ("tests/namenode_sim/datanodes", "tests/namenode_sim/blocks"),
        "blocks",
    ),
    "datanodes": Core(
        (
            "namenode_sim/datanodes/draining.py",
            "namenode_sim/datanodes/heartbeat.py",
            "namenode_sim/datanodes/liveness.py",
            "namenode_sim/datanodes/registry.py",
            "namenode_sim/datanodes/report_leases.py",
        ),
        ("tests/namenode_sim/datanodes", "tests/namenode_sim/blocks"),
        "blocks",
    ),
    "wire": Core(
        (
            "ha/rpc/call_header.py",
            "ha/rpc/session.py",
            "journal/durable.py",
            "journal/frame.py",
            "journal/lane.py",
            "journal/refusals.py",
        ),
        (
            "tests/ha/rpc",
            "tests/journal/test_durable.py",
            "tests/journal/test_frame.py",
            "tests/journal/test_lane_hello.py",
            "tests/journal/test_refusals.py",
        ),
        "journal",
    ),
    "edits-cache": Core(("journal/node/edits_cache.py",), ("tests/journal/node",), "journal"),
    "records": Core(
        ("ha/zkfc/record/cause.py",),
        ("tests/ha/zkfc/test_history.py",),
        "failover",
    ),
    "retries": Core(
        (
            "namenode_sim/edits/recovery.py",
            "namenode_sim/edits/window.py",
            "namenode_sim/namespace/retry_cache.py",
        ),
        ("tests/namenode_sim/edits", "tests/namenode_sim/namespace", "tests/namenode_sim/startup"),
        "whole",
    ),
    "replicas": Core(
        (
            "namenode_sim/datanode/agreement.py",
            "namenode_sim/datanode/checksums.py",
            "namenode_sim/datanode/claim.py",
            "namenode_sim/datanode/packets.py",
            "namenode_sim/datanode/replica.py",
            "namenode_sim/datanode/write_plan.py",
        ),
        ("tests/namenode_sim/datanode",),
        NO_WORLDS,
    ),
    "verdicts": Core(
        (
            "ha/cli/cluster/problems.py",
            "ha/cli/cluster/remarks.py",
            "ha/cli/cluster/successors.py",
            "ha/cli/cluster/verdict.py",
            "ha/cli/explain/doctor/cluster.py",
            "ha/cli/explain/explanation.py",
        ),
        ("tests/ha/cli",),
        NO_WORLDS,
    ),
    "namespace": Core(
        (
            "namenode_sim/namespace/changes.py",
            "namenode_sim/namespace/files.py",
            "namenode_sim/namespace/inode.py",
            "namenode_sim/namespace/inode_map.py",
            "namenode_sim/namespace/namespace.py",
            "namenode_sim/namespace/paths.py",
            "namenode_sim/namespace/state.py",
            "namenode_sim/namespace/tree.py",
        ),
        ("tests/namenode_sim/namespace", "tests/namenode_sim/client_protocol"),
        "whole",
    ),
    "client-calls": Core(
        (
            "namenode_sim/client_protocol/add_block.py",
            "namenode_sim/client_protocol/append.py",
            "namenode_sim/client_protocol/block_recovery.py",
            "namenode_sim/client_protocol/block_writes.py",
            "namenode_sim/client_protocol/concat.py",
            "namenode_sim/client_protocol/create.py",
            "namenode_sim/client_protocol/creation.py",
            "namenode_sim/client_protocol/lease_release.py",
            "namenode_sim/client_protocol/permissions.py",
            "namenode_sim/client_protocol/tree_writes.py",
            "namenode_sim/client_protocol/truncate.py",
        ),
        ("tests/namenode_sim/client_protocol", "tests/namenode_sim/leases"),
        "whole",
    ),
    "checkpoints": Core(
        (
            "namenode_sim/checkpoint/schedule.py",
            "spark/merge/plan/rounds.py",
            "spark/merge/plan/walk.py",
            "spark/service/core.py",
        ),
        (
            "tests/namenode_sim/checkpoint",
            "tests/spark/merge/plan",
            "tests/spark/merge/test_lookup.py",
            "tests/spark/service/test_core.py",
        ),
        NO_WORLDS,
    ),
    "snapshots": Core(
        (
            "namenode_sim/namespace/acl.py",
            "namenode_sim/namespace/admin.py",
            "namenode_sim/namespace/attributes.py",
            "namenode_sim/namespace/file_numbers.py",
            "namenode_sim/namespace/snapshots/deletion.py",
            "namenode_sim/namespace/snapshots/diffs.py",
            "namenode_sim/namespace/snapshots/files.py",
            "namenode_sim/namespace/snapshots/references.py",
            "namenode_sim/namespace/snapshots/renames.py",
            "namenode_sim/namespace/snapshots/snapshots.py",
            "namenode_sim/namespace/snapshots/view.py",
        ),
        ("tests/namenode_sim/namespace", "tests/namenode_sim/client_protocol"),
        "whole",
    ),
    "cluster-map": Core(
        (
            "namenode_sim/datanodes/cluster.py",
            "namenode_sim/datanodes/damage.py",
            "namenode_sim/datanodes/files_summary.py",
            "namenode_sim/datanodes/storage_policies.py",
            "namenode_sim/datanodes/topology.py",
        ),
        ("tests/namenode_sim/datanodes", "tests/namenode_sim/blocks"),
        "blocks",
    ),
    "block-map": Core(
        (
            "namenode_sim/blocks/columns.py",
            "namenode_sim/blocks/incoming.py",
            "namenode_sim/blocks/index.py",
            "namenode_sim/blocks/model.py",
            "namenode_sim/blocks/redundancy.py",
            "namenode_sim/blocks/replicas.py",
            "namenode_sim/blocks/report_rows.py",
            "namenode_sim/blocks/scheduled.py",
            "namenode_sim/blocks/state.py",
            "namenode_sim/blocks/storages.py",
            "namenode_sim/blocks/touched.py",
        ),
        ("tests/namenode_sim/blocks", "tests/namenode_sim/datanodes"),
        "blocks",
    ),
}
