"""Every daemon of a real cluster shows the metrics that are documented for it, and its probes."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from ha.cli.probe.question import answer, parse
from ha.console.exit_codes import DONE
from tests.deploy.monitoring.documented import DAEMONS, metrics_of

pytestmark = pytest.mark.cluster

MOST_LINES = 800


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster with an active, a ready standby and a page."""
    with open_cluster(tmp_path_factory.mktemp("metrics"), web=True) as running:
        running.up()
        yield running
        running.down()


def address(cluster: Cluster, daemon: str, namenode: str = "nn1") -> str:
    match daemon:
        case "NameNode":
            return cluster.layout.url(namenode)
        case "ZKFC":
            return cluster.layout.url(f"zkfc-{namenode}")
        case "Web":
            return cluster.layout.url("web")
        case _:
            return cluster.layout.url("jn1")


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@pytest.mark.row("W15")
@pytest.mark.parametrize("daemon", DAEMONS)
def test_every_documented_metric_is_there_with_help_and_type(cluster: Cluster, daemon: str) -> None:
    text = get(address(cluster, daemon) + "/metrics")[1]
    shown = dict(re.findall(r"^# TYPE (nnha_\w+) (\w+)$", text, re.MULTILINE))
    documented = {name: metric.kind for name, metric in metrics_of(daemon).items()}
    assert shown == documented
    # The event loop stands still while a page is written: 2,000 lines took 50 ms.
    assert text.count("\n") < MOST_LINES
    helps = dict(re.findall(r"^# HELP (nnha_\w+) (.*)$", text, re.MULTILINE))
    assert helps.keys() == shown.keys()
    assert all(len(text) > 10 for text in helps.values())
    for name, labels in re.findall(r"^(nnha_\w+)\{([^}]*)\} ", text, re.MULTILINE):
        stem = re.sub("_(bucket|sum|count)$", "", name)
        metric = metrics_of(daemon).get(name) or metrics_of(daemon)[stem]
        assert set(re.findall(r"(\w+)=", labels)) - {"le"} == metric.labels, name


@pytest.mark.row("W15")
def test_w15_a_scrape_says_what_the_logs_alone_said_in_hadoop(cluster: Cluster) -> None:
    """Lock owner, election, health, ZooKeeper, last failover."""
    active = cluster.wait_for_active()
    node = f'node="ns1.{active}"'
    # Counted in the background: whether it was a failover is seen in the history.
    first = f'nnha_failovers_total{{kind="first",{node},result="succeeded"}} 1.0'

    def counted() -> str | None:
        page = get(cluster.layout.url(f"zkfc-{active}") + "/metrics")[1]
        return page if first in page else None

    text = wait_until(counted, what="the first election to be counted", deadline_seconds=60.0)
    for line in (
        f'nnha_elector_state{{{node},state="active"}} 1.0',
        f'nnha_health_state{{{node},state="healthy"}} 1.0',
        f'nnha_zk_session_state{{{node},state="connected"}} 1.0',
        f'nnha_failovers_total{{kind="auto",{node},result="succeeded"}} 0.0',
    ):
        assert line in text


@pytest.mark.parametrize("daemon", DAEMONS)
def test_every_daemon_is_alive_and_ready(cluster: Cluster, daemon: str) -> None:
    active = cluster.wait_for_active()
    for path in ("/livez", "/readyz", "/health"):
        assert get(address(cluster, daemon, active) + path)[0] == HTTPStatus.OK, path
    for page, told in (("livez", "live"), ("readyz", "ready")):
        question = parse(f"{address(cluster, daemon, active)}/{page}")
        assert answer(question, timeout_seconds=30.0) == (DONE, told)


def test_tools_made_for_hadoop_find_the_state_of_a_namenode(cluster: Cluster) -> None:
    """Check the attributes that Hadoop 3.5's NameNode has there, with its types."""
    active = cluster.wait_for_active()
    standby = "nn2" if active == "nn1" else "nn1"
    for name, state in ((active, "active"), (standby, "standby")):
        url = cluster.layout.url(name)
        beans = json.loads(get(f"{url}/jmx")[1])["beans"]
        names = [bean["name"].removeprefix("Hadoop:service=NameNode,name=") for bean in beans]
        assert names == [
            "NameNodeStatus", "FSNamesystem", "NameNodeInfo", "FSNamesystemState", "BlockStats"
        ]  # fmt: skip
        query = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
        (status,) = json.loads(get(url + query)[1])["beans"]
        assert status["State"] == state
        assert status["NNRole"] == "NameNode"
        assert status["HostAndPort"] == f"127.0.0.1:{cluster.layout.namenodes[name].rpc}"
        assert (status["LastHATransitionTime"] > 0) is (name == active)
        system, info, state_of_all, blocks = beans[1:]
        assert system["tag.HAState"] == state
        assert system["TransactionsSinceLastCheckpoint"] <= system["LastWrittenTransactionId"]
        assert info["BlockPoolId"].startswith("BP-")
        written = json.loads(info["JournalTransactionInfo"])["LastAppliedOrWrittenTxId"]
        assert int(written) == system["LastWrittenTransactionId"]
        assert state_of_all["NumLiveDataNodes"] == len(cluster.layout.datanodes)
        assert state_of_all["FSState"] == "Operational"
        assert isinstance(blocks["StorageTypeStats"], list)


@pytest.mark.parametrize("daemon", ["NameNode", "ZKFC"])
def test_a_balancer_finds_the_active_and_the_standby(cluster: Cluster, daemon: str) -> None:
    active = cluster.wait_for_active()
    standby = "nn2" if active == "nn1" else "nn1"
    cluster.wait_for_ready_standby(standby)
    cluster.wait_for_candidate(standby)
    for name, expected in ((active, (200, 503, 200)), (standby, (503, 200, 405))):
        url = address(cluster, daemon, name)
        got = tuple(get(url + path)[0] for path in ("/active", "/standby", "/isActive"))
        assert got == expected, name
    assert get(cluster.layout.url(standby) + "/standby?max_lag=10m")[0] == HTTPStatus.OK
