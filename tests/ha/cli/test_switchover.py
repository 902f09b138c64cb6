"""nnha switchover and failover against real servers: outcomes, refusals, exit codes."""

import asyncio
import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import structlog

from ha.cli.operate.plan.handover import HandoverPlan, plan_failover, plan_switchover
from ha.cluster.zookeeper_view import LockView
from ha.console.result import Code, CommandOutcome, Ending
from ha.notices.model import Drain, Pause
from ha.service.errors import NO_ZOOKEEPER_TO_ASK
from ha.service.model import ServiceState
from tests.ha.cli import schema
from tests.ha.cli.nnha_run import Told, nnha
from tests.ha.cli.stand_ins import Cluster, running_cluster
from tests.ha.cli.test_cluster_view import GONE, SILENT, WELL
from tests.ha.notices.test_model import MEMBER, NOON
from tests.ha.zkfc.zkfc_world import until

AUTO = ("-D", "dfs.ha.automatic-failover.enabled=true", "-D", "ha.zookeeper.quorum=127.0.0.1:1")
QUICK = ("-D", "ha.failover-controller.graceful-fence.rpc-timeout.ms=500")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    async with running_cluster(tmp_path) as running:
        yield running
    structlog.reset_defaults()


def test_every_code_is_in_the_schema_and_every_outcome_has_an_exit_code() -> None:
    properties = schema.load("ending")["properties"]
    assert isinstance(properties, dict)
    assert properties["code"]["enum"] == list(Code)
    assert properties["outcome"]["enum"] == list(CommandOutcome)
    assert {one.exit_code for one in CommandOutcome} == {0, 3, 4, 5, 6, 7}


async def run(cluster: Cluster, command: str, *words: str) -> Told:
    conf = ("--conf-dir", str(cluster.conf_dir))
    return await nnha(command, *conf, *AUTO, *QUICK, *words)


async def test_the_zkfc_of_the_target_does_it_and_the_namenodes_confirm_it(
    cluster: Cluster,
) -> None:
    told = await run(cluster, "switchover", "nn2", "--yes", "--reason", "new disk", "-o", "json")
    assert told.code == 0
    found = told.document
    assert schema.faults("ending", found) == []
    assert (found["outcome"], found["active_before"], found["active_now"]) == ("done", "nn1", "nn2")
    assert cluster.controllers["nn2"].reasons == ["new disk"]
    assert cluster.namenodes["nn1"].state is ServiceState.STANDBY


async def test_without_a_target_the_best_candidate_is_taken(cluster: Cluster) -> None:
    told = await run(cluster, "switchover", "--yes")
    assert told.code == 0
    assert told.out.startswith("nn2 is active in place of nn1, after ")


async def test_a_dry_run_changes_nothing_and_says_what_would(cluster: Cluster) -> None:
    told = await run(cluster, "switchover", "nn2", "--dry-run")
    assert told.code == 0
    assert "WOULD BE DONE (nothing was changed): nn2 would become active" in told.out
    assert cluster.controllers["nn2"].asked == 0


async def test_without_a_terminal_and_without_yes_nothing_is_done(cluster: Cluster) -> None:
    told = await run(cluster, "switchover", "nn2")
    assert told.code == 3
    assert "Next: nnha switchover nn2 --yes" in told.out
    assert cluster.controllers["nn2"].asked == 0


async def test_the_active_as_target_is_done_already(cluster: Cluster) -> None:
    told = await run(cluster, "switchover", "nn1", "--yes", "-o", "json")
    assert (told.code, told.document["code"]) == (0, "ALREADY_SO")


async def test_a_refusing_zkfc_is_a_failure_with_its_reason_and_the_present_state(
    cluster: Cluster,
) -> None:
    cluster.controllers["nn2"].refusal = "the active did not cede"
    told = await run(cluster, "switchover", "nn2", "--yes", "-o", "json")
    assert (told.code, told.document["code"]) == (4, "HAND_OVER_FAILED")
    assert (
        "the active did not cede; at present: nn1 active, nn2 standby" in told.document["message"]
    )
    assert told.document["active_now"] == "nn1"


async def test_a_zkfc_without_zookeeper_has_changed_nothing(cluster: Cluster) -> None:
    """Guard against exit code 4, begun and failed, with the advice to ask why none takes over."""
    reason = f"{NO_ZOOKEEPER_TO_ASK}zk1 answered"
    cluster.controllers["nn2"].refusal = reason
    told = await run(cluster, "switchover", "nn2", "--yes", "-o", "json")
    assert (told.code, told.document["code"]) == (6, "ZOOKEEPER_UNREACHABLE")
    assert told.document["message"] == (
        f"the ZKFC of nn2 {reason}; at present: nn1 active, nn2 standby"
    )
    assert told.document["active_now"] == "nn1"


async def test_a_zkfc_that_falls_silent_after_it_acted_is_a_success(cluster: Cluster) -> None:
    cluster.controllers["nn2"].hang_up = True
    told = await run(cluster, "switchover", "nn2", "--yes")
    assert told.code == 0


async def test_a_zkfc_that_falls_silent_without_acting_leaves_it_unknown(cluster: Cluster) -> None:
    controller = cluster.controllers["nn2"]
    controller.hang_up, controller.still_acts = True, False
    told = await run(cluster, "switchover", "nn2", "--yes", "--wait", "1")
    assert told.code == 5
    assert "OUTCOME UNKNOWN: the ZKFC of nn2 stopped answering" in told.out
    assert "Next: nnha status, and nnha history" in told.out


async def test_a_zkfc_that_does_not_let_us_is_not_authorised(cluster: Cluster) -> None:
    cluster.controllers["nn2"].forbidden = True
    told = await run(cluster, "switchover", "nn2", "--yes", "-o", "json")
    assert (told.code, told.document["outcome"]) == (7, "unauthorised")
    assert told.document["active_now"] == "nn1"


async def test_a_zkfc_whose_rpc_port_is_closed_is_unreachable(cluster: Cluster) -> None:
    gone = ("-D", "dfs.ha.zkfc.port.ns1.nn2=1")
    told = await run(cluster, "switchover", *gone, "nn2", "--yes", "-o", "yaml")
    assert told.code == 6
    assert 'code: "ZKFC_UNREACHABLE"' in told.out


async def test_without_an_active_failover_calls_the_target_and_holds_the_others_back(
    cluster: Cluster,
) -> None:
    cluster.namenodes["nn1"].state = ServiceState.STANDBY
    cluster.controllers["nn2"].acts_when_called_back = True
    told = await run(cluster, "failover", "nn2", "--yes", "-o", "json")
    assert (told.code, told.document["active_now"]) == (0, "nn2")
    assert cluster.controllers["nn1"].ceded == [10_000, 0]
    assert cluster.controllers["nn2"].ceded == [0]


async def test_a_failover_in_vain_says_how_things_stand(cluster: Cluster) -> None:
    cluster.namenodes["nn1"].state = ServiceState.STANDBY
    told = await run(cluster, "failover", "nn2", "--yes", "--wait", "1")
    assert told.code == 4
    assert "at present: nn1 standby, nn2 standby" in told.out
    assert cluster.controllers["nn1"].ceded == [10_000, 0]


async def test_a_configuration_that_cannot_be_used_is_told_as_json_too(tmp_path: Path) -> None:
    told = await nnha("switchover", "--conf-dir", str(tmp_path / "none"), "-o", "json")
    assert (told.code, told.document["code"]) == (2, "BAD_CONFIGURATION")
    assert told.document["exit_code"] == 2


def refused(found: HandoverPlan | Ending) -> Ending:
    assert isinstance(found, Ending)
    assert found.outcome is CommandOutcome.REFUSED
    return found


def unanswered(plan: HandoverPlan | Ending) -> Ending:
    assert isinstance(plan, Ending)
    assert plan.outcome is CommandOutcome.UNREACHABLE
    return plan


def changed(index: int, **changes: object) -> dict[str, object]:
    rows = list(WELL.namenodes)
    rows[index] = dataclasses.replace(rows[index], **changes)  # type: ignore[arg-type]
    return {"namenodes": tuple(rows)}


def zkfc_changed(index: int, **changes: object) -> dict[str, object]:
    rows = list(WELL.zkfcs)
    rows[index] = dataclasses.replace(rows[index], **changes)  # type: ignore[arg-type]
    return {"zkfcs": tuple(rows)}


def noted(**notices: object) -> dict[str, object]:
    return {"notices": dataclasses.replace(WELL.notices, **notices)}  # type: ignore[arg-type]


DRAIN = Drain(owner="bob@ops1", reason="disk", since=NOON, until=None)

UNFIT: dict[str, tuple[dict[str, object], str, str]] = {
    "its NameNode is down": (
        changed(1, state=None, error=GONE),
        f"NameNode: {GONE}",
        "start it on h: nnha namenode -D dfs.ha.namenode.id=nn2",
    ),
    "not ready": (
        changed(1, ready=False, not_ready_reason="3m12s behind"),
        "NameNode: not ready: 3m12s behind",
        "wait, and look again: nnha status -w",
    ),
    "starting": (changed(1, state="initializing"), "NameNode: it is still starting", "wait"),
    "an observer": (changed(1, state="observer"), "it is an observer", ""),
    "its ZKFC is down": (
        zkfc_changed(1, error=GONE),
        f"ZKFC: {GONE}",
        "start it on h: nnha zkfc -D dfs.ha.namenode.id=nn2",
    ),
    "its ZKFC holds it for ill": (
        zkfc_changed(1, health="unhealthy", health_reason="disk full"),
        "ZKFC: judges the NameNode unhealthy (disk full)",
        "see its log on h",
    ),
    "drained": (
        noted(drains={"nn2": DRAIN}),
        "drained by bob@ops1 until it is ended: disk",
        "nnha drain nn2 --end",
    ),
}


@pytest.mark.parametrize("situation", UNFIT)
def test_an_unfit_target_is_refused_with_the_reason_and_what_helps(situation: str) -> None:
    changes, text, helps = UNFIT[situation]
    view = dataclasses.replace(WELL, **changes)  # type: ignore[arg-type]
    ending = refused(plan_switchover(view, "nn2"))
    assert ending.code is Code.CANDIDATE_UNFIT
    own = next(one for one in ending.reasons if one.node == "nn2")
    assert text in own.text
    assert own.next.startswith(helps)
    assert refused(plan_switchover(view, None)).code is Code.NO_CANDIDATE


def test_what_keeps_a_node_out_of_the_election_alone_does_not_stop_an_operator() -> None:
    never = dataclasses.replace(MEMBER, namenode="nn2", nofailover=True)
    out = zkfc_changed(1, in_election=False, out_because="the last takeover failed")
    for changes in (noted(members={"nn2": never}), out):
        view = dataclasses.replace(WELL, **changes)  # type: ignore[arg-type]
        assert refused(plan_switchover(view, None)).code is Code.NO_CANDIDATE
        assert plan_switchover(view, "nn2") == HandoverPlan("nn2", "nn1")


def test_another_that_would_be_accepted_is_offered() -> None:
    third = dataclasses.replace(WELL.namenodes[1], namenode="nn3", last_txid=4900)
    rows = (WELL.namenodes[0], dataclasses.replace(WELL.namenodes[1], ready=False), third)
    view = dataclasses.replace(WELL, namenodes=rows)
    lines = list(refused(plan_switchover(view, "nn2")).as_lines())
    assert lines[0] == "REFUSED (nothing was changed): nn2 cannot take over now"
    assert lines[3] == "  nn3  fit: 100 transactions behind, priority 100  → nnha switchover nn3"


def test_among_fit_ones_priority_decides_and_then_the_smaller_lag() -> None:
    rows = (
        WELL.namenodes[0],
        dataclasses.replace(WELL.namenodes[1], last_txid=4000),
        dataclasses.replace(WELL.namenodes[1], namenode="nn3", last_txid=4900),
    )
    view = dataclasses.replace(WELL, namenodes=rows)
    assert plan_switchover(view, None) == HandoverPlan("nn3", "nn1")
    first = dataclasses.replace(MEMBER, namenode="nn2", priority=200)
    preferred = dataclasses.replace(view, **noted(members={"nn2": first}))  # type: ignore[arg-type]
    assert plan_switchover(preferred, None) == HandoverPlan("nn2", "nn1")


def test_an_expired_drain_is_none() -> None:
    over = dataclasses.replace(DRAIN, until=NOON.replace(year=2025))
    view = dataclasses.replace(WELL, **noted(drains={"nn2": over}))  # type: ignore[arg-type]
    assert plan_switchover(view, "nn2") == HandoverPlan("nn2", "nn1")


REFUSALS: dict[str, tuple[dict[str, object], Code]] = {
    "nobody is active": (changed(0, state="standby"), Code.NO_ACTIVE),
    "two are active": (changed(1, state="active"), Code.TWO_ACTIVE),
    "no ZKFCs": ({"automatic_failover": False}, Code.NOT_AUTOMATIC),
}


@pytest.mark.parametrize("situation", REFUSALS)
def test_a_switchover_that_makes_no_sense_says_why(situation: str) -> None:
    changes, code = REFUSALS[situation]
    view = dataclasses.replace(WELL, **changes)  # type: ignore[arg-type]
    ending = refused(plan_switchover(view, "nn2"))
    assert ending.code is code
    assert ending.hint


def test_a_node_that_does_not_exist_is_refused_with_those_that_do() -> None:
    ending = refused(plan_switchover(WELL, "nn7"))
    assert ending.code is Code.NO_SUCH_NODE
    assert "it has nn1, nn2" in ending.message


def test_failover_is_refused_while_somebody_is_active_and_answers() -> None:
    ending = refused(plan_failover(WELL, "nn2"))
    assert (ending.code, ending.hint) == (Code.ACTIVE_PRESENT, "nnha switchover nn2")
    nobody = dataclasses.replace(WELL, **changed(0, state="standby"))  # type: ignore[arg-type]
    assert plan_failover(nobody, "nn2") == HandoverPlan("nn2", None, ("nn1",))


def test_failover_without_zookeeper_says_so_and_begins_nothing() -> None:
    away = LockView(error="no ZooKeeper of z:1 answered within 2 s")
    lost = {**changed(0, state="standby"), **zkfc_changed(1, zookeeper="connection lost")}
    nobody = dataclasses.replace(WELL, **lost, lock=away)  # type: ignore[arg-type]
    ending = plan_failover(nobody, "nn2")
    assert isinstance(ending, Ending)
    assert (ending.code, ending.outcome) == (
        Code.ZOOKEEPER_UNREACHABLE, CommandOutcome.UNREACHABLE,
    )  # fmt: skip
    assert "no ZooKeeper of z:1 answered" in ending.message
    assert "docs/operations.md" in ending.hint
    # The machine of an operator may not reach what the ZKFCs reach.
    here_only = dataclasses.replace(nobody, **zkfc_changed(1, zookeeper="connected"))  # type: ignore[arg-type]
    assert plan_failover(here_only, "nn2") == HandoverPlan("nn2", None, ("nn1",))


def test_a_silent_holder_of_the_lock_is_taken_over_from_by_a_switchover() -> None:
    hangs = changed(0, state=None, error=SILENT)
    view = dataclasses.replace(WELL, **hangs)  # type: ignore[arg-type]
    for target in ("nn2", None):
        assert plan_switchover(view, target) == HandoverPlan("nn2", "nn1", unheard=True)
    assert unanswered(plan_switchover(view, "nn1")).code is Code.NO_ANSWER
    ending = refused(plan_failover(view, "nn2"))
    assert (ending.code, ending.hint) == (Code.ACTIVE_PRESENT, "nnha switchover nn2")


@pytest.mark.parametrize(
    ("away", "judge", "code"),
    [(GONE, refused, Code.NO_ACTIVE), (SILENT, unanswered, Code.NO_ANSWER)],
)
def test_without_the_holders_zkfc_nobody_could_give_up_its_lock(
    away: str, judge: Callable[[HandoverPlan | Ending], Ending], code: Code
) -> None:
    hangs = {**changed(0, state=None, error=SILENT), **zkfc_changed(0, error=away)}
    view = dataclasses.replace(WELL, **hangs)  # type: ignore[arg-type]
    assert judge(plan_switchover(view, "nn2")).code is code
    assert plan_failover(view, "nn2") == HandoverPlan("nn2", None)


def test_in_a_pause_a_switchover_takes_over_from_a_holder_that_is_gone() -> None:
    """Keep the guide's promise that a switchover works in a pause; the ZKFC keeps the lock."""
    pause = Pause(owner="ann@ops1", reason="new switch", since=NOON, until=None)
    gone = {**changed(0, state=None, error=GONE), **noted(pause=pause)}
    view = dataclasses.replace(WELL, **gone)  # type: ignore[arg-type]
    assert plan_switchover(view, "nn2") == HandoverPlan("nn2", "nn1", unheard=True)
    ending = refused(plan_failover(view, "nn2"))
    assert (ending.code, ending.hint) == (Code.PAUSED, "nnha switchover nn2, or nnha resume")


async def test_an_interrupted_switchover_says_that_it_may_go_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    controller = cluster.controllers["nn2"]
    controller.says_nothing = True
    conf = ("--conf-dir", str(cluster.conf_dir))
    audit = ("-D", f"nnha.audit.file={tmp_path / 'audit.log'}")
    words = ("-m", "ha.cli.main", "switchover", *conf, *AUTO, *audit, "nn2", "--yes")
    # A shell that runs the tests in the background has us ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        await until(lambda: controller.asked == 1, "the ZKFC to be asked")
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 130
    assert "INTERRUPTED: the ZKFC of nn2 may go on with it" in err.decode()
    line = json.loads((tmp_path / "audit.log").read_text())
    assert (line["action"], line["outcome"]) == ("switchover", "unknown")
    assert line["target"] == "ns1.nn2"
