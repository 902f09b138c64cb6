"""haadmin against real RPC servers: Hadoop's lines, refusals and exit codes."""

import io

import pytest

from ha.cli.hadoop.haadmin import COMMANDS, run
from ha.cli.hadoop.java_address import java_host
from ha.service.model import RequestSource, ServiceState
from tests.ha.cli.stand_ins import Cluster, Shell

AUTO = ("-D", "dfs.ha.automatic-failover.enabled=true")


async def test_states_are_single_words_in_lower_case(haadmin: Shell) -> None:
    told = await haadmin("-getServiceState", "nn1")
    assert (told.code, told.out, told.err) == (0, "active\n", "")
    told = await haadmin("-ns", "ns1", "--getServiceState", "nn2")
    assert (told.code, told.out) == (0, "standby\n")


async def test_all_states_are_a_table_of_fixed_width_and_a_dead_node_is_one_of_its_rows(
    haadmin: Shell, cluster: Cluster
) -> None:
    told = await haadmin(*DEAD, "-getAllServiceState")
    first, second = told.out.splitlines()
    host = await java_host("127.0.0.1")
    address = f"{host}:{cluster.ports['rpc-nn1']}"
    assert first == f"{address:<50} active    "
    assert second.startswith(f"{host + ':1':<50} Failed to connect: ")
    assert told.code == 0


async def test_health_is_silence_or_a_reason(haadmin: Shell, cluster: Cluster) -> None:
    told = await haadmin("-checkHealth", "nn1")
    assert (told.code, told.out, told.err) == (0, "", "")
    cluster.namenodes["nn1"].unwell = "disk full"
    told = await haadmin("-checkHealth", "nn1")
    assert (told.code, told.err) == (255, "Health check failed: disk full\n")


DEAD = ("-D", "dfs.namenode.rpc-address.ns1.nn2=127.0.0.1:1")
UNKNOWN_NODE = "Illegal argument: Unable to determine service address for namenode 'nn9'"
FAILURES = {
    "a dead node": ((*DEAD, "-getServiceState", "nn2"), "Operation failed: 127.0.0.1:1"),
    "a controller that does not run": (
        (*AUTO, "-D", "dfs.ha.zkfc.port.ns1.nn2=1", "-failover", "nn1", "nn2"),
        "Operation failed: ",
    ),
    "a forced failover with controllers": (
        (*AUTO, "-failover", "--forcefence", "nn1", "nn2"),
        "forcefence and forceactive flags not supported with auto-failover",
    ),
    "an unknown NameNode": (("-getServiceState", "nn9"), UNKNOWN_NODE),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_failure_is_255_with_its_reason(haadmin: Shell, case: str) -> None:
    words, reason = FAILURES[case]
    told = await haadmin(*words)
    assert told.code == 255
    assert told.err.startswith(reason)
    assert haadmin.cluster.controllers["nn2"].asked == 0


async def test_failover_asks_the_controller_of_the_second_node(haadmin: Shell) -> None:
    told = await haadmin(*AUTO, "-failover", "nn1", "nn2")
    port = haadmin.cluster.ports["rpc-nn2"]
    assert told.err == ""
    host = await java_host("127.0.0.1")
    assert told.out == f"Failover to NameNode at {host}/127.0.0.1:{port} successful\n"
    assert told.code == 0
    assert haadmin.cluster.controllers["nn2"].asked == 1
    assert haadmin.cluster.namenodes["nn2"].state is ServiceState.ACTIVE


async def test_a_refused_failover_gives_the_controllers_reason(haadmin: Shell) -> None:
    haadmin.cluster.controllers["nn2"].refusal = "nn2 is not healthy"
    told = await haadmin(*AUTO, "-failover", "nn1", "nn2")
    assert (told.code, told.err) == (255, "Failover failed: nn2 is not healthy\n")


@pytest.mark.row("W9")
async def test_a_controller_that_falls_silent_after_acting_is_a_success_when_it_can_be_seen(
    haadmin: Shell, cluster: Cluster
) -> None:
    cluster.controllers["nn2"].hang_up = True
    told = await haadmin(*AUTO, "-failover", "nn1", "nn2")
    assert told.code == 0
    assert told.out.endswith("successful\n")


@pytest.mark.row("W9")
async def test_a_controller_that_falls_silent_leaves_the_outcome_unknown(haadmin: Shell) -> None:
    haadmin.cluster.controllers["nn2"].hang_up = True
    haadmin.cluster.controllers["nn2"].still_acts = False
    told = await haadmin(*AUTO, "-failover", "nn1", "nn2")
    assert told.code == 5
    assert told.out == ""
    assert "Failover outcome unknown" in told.err
    assert "is standby at this moment" in told.err


async def test_failover_without_controllers_goes_to_the_namenodes_themselves(
    haadmin: Shell, cluster: Cluster
) -> None:
    fencer = ("-D", "dfs.ha.fencing.methods=shell(true)")
    none = await haadmin("-failover", "nn1", "nn2")
    assert (none.code, none.out) == (255, "")
    assert none.err.startswith("Illegal argument: failover requires a fencer")
    assert "not set for nn1" in none.err
    done = await haadmin(*fencer, "-failover", "nn1", "nn2")
    assert (done.code, done.out) == (0, "Failover from nn1 to nn2 successful\n"), done.err
    again = await haadmin(*fencer, "-failover", "nn1", "nn2")
    assert again.code == 255
    assert "which is active" in again.err
    strange = ("-D", "dfs.ha.fencing.methods=foobar!")
    bad = await haadmin(*strange, "-failover", "nn2", "nn1")
    assert bad.code == 255
    assert cluster.controllers["nn2"].asked == 0


async def test_transitions_by_hand_go_out_in_the_users_name(haadmin: Shell) -> None:
    nn1, nn2 = haadmin.cluster.namenodes["nn1"], haadmin.cluster.namenodes["nn2"]
    told = await haadmin("-transitionToActive", "nn2")
    assert told.code == 255
    assert "already active" in told.err
    assert nn2.asked == []
    assert (await haadmin("-transitionToStandby", "nn1")).code == 0
    assert (await haadmin("-transitionToActive", "nn2")).code == 0
    assert nn1.asked == [("standby", RequestSource.USER)]
    assert nn2.asked == [("active", RequestSource.USER)]


@pytest.mark.parametrize("words", [("-transitionToStandby", "nn1"), ("-transitionToActive", "nn2")])
async def test_a_transition_whose_answer_is_lost_may_have_happened(
    haadmin: Shell, cluster: Cluster, words: tuple[str, str]
) -> None:
    cluster.namenodes["nn1"].state = ServiceState.STANDBY
    node = cluster.namenodes[words[1]]
    node.hang_up = True
    told = await haadmin(*words)
    assert (told.code, told.out) == (5, "")
    assert f"Outcome unknown: {words[1]} stopped answering" in told.err
    assert len(node.asked) == 1
    dead = ("-D", f"dfs.namenode.rpc-address.ns1.{words[1]}=127.0.0.1:1")
    told = await haadmin(*dead, *words)
    assert told.code == 255
    assert "Operation failed" in told.err


async def test_a_node_that_cannot_be_asked_may_be_active(haadmin: Shell, cluster: Cluster) -> None:
    dead = ("-D", "dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:1")
    told = await haadmin(*dead, "-transitionToActive", "nn2")
    assert told.code == 255
    assert "Unexpected error occurred" in told.err
    assert cluster.namenodes["nn2"].asked == []
    told = await haadmin(*dead, "-transitionToActive", "--forceactive", "nn2")
    assert told.code == 0
    assert cluster.namenodes["nn2"].asked == [("active", RequestSource.USER)]


@pytest.mark.row("W21")
@pytest.mark.parametrize(
    ("answer", "code", "asked"),
    [
        ("y\n", 0, [("standby", RequestSource.USER_FORCED)]),
        ("maybe\nyes\n", 0, [("standby", RequestSource.USER_FORCED)]),
        ("n\n", 255, []),
        ("", 255, []),
    ],
    ids=["yes", "yes in the end", "no", "the end of input is a no"],
)
async def test_forcemanual_warns_and_asks(
    haadmin: Shell,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    asked: list[tuple[str, RequestSource]],
) -> None:
    refused = await haadmin(*AUTO, "-transitionToStandby", "nn1")
    assert refused.code == 255
    assert "Refusing to manually manage" in refused.err
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    told = await haadmin(*AUTO, "-transitionToStandby", "--forcemanual", "nn1")
    assert "abort safely" in told.err
    assert told.code == code
    assert cluster.namenodes["nn1"].asked == asked


USAGE_ERRORS = {
    "nothing": ([], "Usage: haadmin"),
    "a word without a dash": (["getServiceState"], "Bad command 'getServiceState'"),
    "an unknown command": (["-badCommand"], "badCommand: Unknown command"),
    "-ns alone": (["-ns"], "Missing nameservice ID"),
    "-ns and nothing more": (["-ns", "ns1"], "Missing command"),
    "too few": (["-getServiceState"], "getServiceState: incorrect number of arguments"),
    "too many": (["-checkHealth", "a", "b"], "checkHealth: incorrect number of arguments"),
    "a third node": (["-failover", "a", "b", "c"], "failover: incorrect arguments"),
    "an unknown option": (["-checkHealth", "--x", "a"], "checkHealth: incorrect arguments"),
    "help for nothing known": (["-help", "bad"], "-bad: Unknown command"),
}


@pytest.mark.parametrize("case", USAGE_ERRORS.values(), ids=USAGE_ERRORS.keys())
def test_wrong_usage_is_255_with_hadoops_words(
    case: tuple[list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    words, message = case
    assert run(tuple(words)) == 255
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert "Usage: haadmin" in err


def test_help_is_no_error_even_for_a_nameservice_that_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(("-help",)) == 0
    assert run(("-ns", "bogus", "-help", "failover")) == 0
    out, _ = capsys.readouterr()
    assert "[-failover [--forcefence] [--forceactive] <serviceId> <serviceId>]" in out
    assert list(COMMANDS) == sorted(COMMANDS)


async def test_several_nameservices_need_ns(haadmin: Shell) -> None:
    several = ("-D", "dfs.nameservices=ns1,ns2")
    told = await haadmin(*several, "-getServiceState", "nn1")
    assert told.code == 255
    assert "-ns <nameserviceId>" in told.err
    told = await haadmin(*several, "-ns", "ns1", "-getServiceState", "nn1")
    assert told.code == 0
