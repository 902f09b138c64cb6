"""The pure cores: their files, the fast tests of each, and the worlds that run it."""

from pathlib import PurePosixPath
from typing import Final

from tests import ROOT
from tests.mutation.core import NO_WORLDS, Core
from tests.mutation.namenode_cores import NAMENODE_CORES

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
            "fencing/known_hosts.py",
            "fencing/model.py",
            "fencing/remote_shell.py",
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
            "ha/elector/zookeeper/outcome.py",
            "ha/elector/zookeeper/breadcrumb.py",
            "ha/elector/zookeeper/acl_review.py",
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
    "wire": Core(
        (
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
    "edits-cache": Core(("journal/node/owner/edits_cache.py",), ("tests/journal/node",), "journal"),
    "records": Core(
        ("ha/zkfc/record/cause.py",),
        ("tests/ha/zkfc/test_history.py",),
        "failover",
    ),
    "verdicts": Core(
        (
            "ha/cluster/problems.py",
            "ha/cluster/row_notes.py",
            "ha/cluster/candidates.py",
            "ha/cluster/verdict.py",
            "ha/cli/explain/doctor/cluster.py",
            "ha/cli/explain/explanation.py",
        ),
        ("tests/ha/cli",),
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
    "configuration": Core(
        (
            "ha/conf/client_proxy.py",
            "ha/conf/configuration.py",
            "ha/conf/expansion.py",
            "ha/conf/hazards.py",
            "ha/conf/host_names.py",
            "ha/conf/ignored.py",
            "ha/conf/keys/units.py",
            "ha/conf/keys/unused.py",
            "ha/conf/own_user.py",
            "ha/conf/reader.py",
            "ha/conf/secrets.py",
            "ha/conf/spelling.py",
            "ha/conf/topology.py",
        ),
        ("tests/ha/conf",),
        NO_WORLDS,
    ),
    "tokens": Core(
        (
            "ha/security/sasl/digest_md5.py",
            "ha/security/sasl/message_layer.py",
            "files/held_tokens.py",
            "hadoop/token_file.py",
            "hadoop/webhdfs/token_text.py",
            "namenode_sim/client_protocol/tokens/calls.py",
            "namenode_sim/client_protocol/tokens/secret_manager.py",
            "namenode_sim/token_login.py",
        ),
        (
            "tests/ha/security/sasl",
            "tests/namenode_sim/client_protocol/test_token_limits.py",
            "tests/namenode_sim/client_protocol/test_tokens.py",
            "tests/namenode_sim/process/test_token_login.py",
            "tests/namenode_sim/webhdfs/test_operations.py",
            "tests/hadoop/test_webhdfs_token_text.py",
            "tests/files/test_held_tokens.py",
        ),
        NO_WORLDS,
    ),
    "pages": Core(
        (
            "ha/daemon/http/hosts.py",
            "ha/cluster/marks.py",
            "ha/web/pictures.py",
            "ha/web/render.py",
        ),
        (
            "tests/ha/web/test_hosts.py",
            "tests/ha/web/test_marks.py",
            "tests/ha/web/test_pictures.py",
            "tests/ha/web/test_render.py",
        ),
        NO_WORLDS,
    ),
    **NAMENODE_CORES,
}


WORLDS_OF: Final = {
    "fencing": "failover",
    "ha/elector": "failover",
    "ha/health": "failover",
    "ha/zkfc": "failover",
    "journal": "journal",
}
"""The simulations that run these folders as they are; CI plays some of them."""


def below(folder: str) -> Core:
    """Return the code below a folder of the product, with its tests and its simulations.

    The tests are those that mirror it; where no folder of tests has the same name, they are those
    of the nearest folder above.
    """
    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py"))
    ours = sorted(name for name in files if "_pb2" not in name and "__" not in name)
    mirror = PurePosixPath("tests") / folder
    while not (ROOT / mirror).is_dir():
        mirror = mirror.parent
    above = [str(one) for one in (PurePosixPath(folder), *PurePosixPath(folder).parents)]
    worlds = next((WORLDS_OF[one] for one in above if one in WORLDS_OF), NO_WORLDS)
    return Core(tuple(ours), (str(mirror),), worlds)
