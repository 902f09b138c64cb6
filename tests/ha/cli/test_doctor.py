"""nnha doctor: each check's verdict in a table of situations, and one run of all."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from ha.cli.explain.doctor import local
from ha.cli.explain.doctor.cluster import check_clocks, check_cluster
from ha.cluster.check_result import Finding, Severity
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import LockView, NoticesView, ZooKeeperRow
from ha.conf.configuration import Configuration, load_configuration
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.outcome import Done, value_of
from ha.elector.zookeeper.znodes import connected, ensure_parent
from ha.notices.model import Drain, FailoverResult, HistoryEntry, Pause, encode_member
from ha.notices.store import second_zkfcs_path
from tests.ha.cli import schema
from tests.ha.cli.conftest import PORTS
from tests.ha.cli.nnha_run import nnha
from tests.ha.cli.stand_ins import Cluster, write_configuration
from tests.ha.cli.test_cluster_view import ACTIVE, GONE, STANDBY, WELL, journals
from tests.ha.cli.zookeeper_scope import Scope
from tests.ha.notices.test_model import MEMBER, NOON, RECORD

GOOD = dataclasses.replace(
    WELL,
    taken_at="2026-05-01T12:30:00.000Z",
    zookeepers=tuple(ZooKeeperRow(f"z{n}:1", mode="follower") for n in (1, 2, 3)),
)
PAUSE = Pause(owner="ann@ops1", reason="switch", since=NOON, until=NOON + timedelta(hours=1))
DRAIN = Drain(owner="bob@ops1", reason="disk", since=NOON, until=None)
RECENT = dataclasses.replace(RECORD, at=NOON + timedelta(minutes=25))


def worse(view: ClusterView) -> dict[str, Severity]:
    return {one.check: one.verdict for one in check_cluster(view) if one.verdict is not Severity.OK}


def noted(**notices: object) -> dict[str, object]:
    return {"notices": NoticesView(**notices)}  # type: ignore[arg-type]


def zkfc(**changes: object) -> dict[str, object]:
    row = dataclasses.replace(WELL.zkfcs[1], **changes)  # type: ignore[arg-type]
    return {"zkfcs": (WELL.zkfcs[0], row)}


def entries(*records: object) -> dict[str, object]:
    return noted(
        history=tuple(HistoryEntry(n, one) for n, one in enumerate(records))  # type: ignore[arg-type]
    )


W, F, U = Severity.WARN, Severity.FAIL, Severity.UNKNOWN
SITUATIONS: dict[str, tuple[dict[str, object], dict[str, Severity]]] = {
    "all is well": ({}, {}),
    "nobody is active": (
        {"namenodes": (dataclasses.replace(ACTIVE, state="standby"), STANDBY)},
        {"one active": F},
    ),
    "a second zkfc of one NameNode": (
        noted(namesakes=(MEMBER,)),
        {f"ZKFC of {MEMBER.namenode}": F},
    ),
    "two are active": (
        {"namenodes": (ACTIVE, dataclasses.replace(STANDBY, state="active"))},
        {"one active": F, "failover ready": F},
    ),
    "another holds the lock": ({"lock": LockView(holder="nn2")}, {"one active": F}),
    "a standby is down": (
        {"namenodes": (ACTIVE, dataclasses.replace(STANDBY, state=None, error=GONE))},
        {"failover ready": F, "NameNode nn2": F},
    ),
    "a standby is far behind": (
        {"namenodes": (dataclasses.replace(ACTIVE, last_txid=50_000), STANDBY)},
        {"NameNode nn2": W},
    ),
    "one journal node is down": (journals({"error": GONE}), {"journal majority": F}),
    "the journal is down": (
        journals({"error": GONE}, {"error": GONE}),
        {"journal majority": F, "failover ready": F},
    ),
    "the journal is not formatted": (
        journals({"formatted": False}, {"formatted": False}, {"formatted": False}),
        {"journal majority": F, "failover ready": F},
    ),
    "a disk fills": (
        journals({"disk_free_bytes": 10, "disk_total_bytes": 100}),
        {"disk of j1:1": W},
    ),
    "a disk is full": (
        journals({"disk_free_bytes": 1, "disk_total_bytes": 100}),
        {"disk of j1:1": F},
    ),
    "two journal nodes": ({"journalnodes": WELL.journalnodes[:2]}, {"journal size": W}),
    "journal nodes share a host": (
        journals({"node": "j1:1"}, {"node": "j1:2"}),
        {"journal hosts": W},
    ),
    "one ZooKeeper": ({"zookeepers": GOOD.zookeepers[:1]}, {"ZooKeeper size": W}),
    "a ZooKeeper is down": (
        {"zookeepers": (*GOOD.zookeepers[:2], ZooKeeperRow("z3:1", error=GONE))},
        {"ZooKeeper": F},
    ),
    "a ZKFC is down": (zkfc(error=GONE), {"ZKFC of nn2": F, "failover ready": F}),
    "a takeover failed": (zkfc(last_failure="no method"), {"ZKFC of nn2": F}),
    "a page is bound to its own host": (
        zkfc(note="from its znode; status page: x"),
        {"ZKFC of nn2": W},
    ),
    "a short pause": (noted(pause=PAUSE), {"pause": W, "failover ready": F}),
    "a pause without end": (
        noted(pause=dataclasses.replace(PAUSE, until=None)),
        {"pause": F, "failover ready": F},
    ),
    "a drain": (noted(drains={"nn1": DRAIN}), {"drain": W}),
    "junk": (noted(unreadable=("NnhaPause: no pause",)), {"notices": F}),
    "versions differ": (
        noted(members={"nn1": MEMBER, "nn2": dataclasses.replace(MEMBER, version="0.2")}),
        {"versions": W},
    ),
    "users differ": (
        noted(
            members={
                name: dataclasses.replace(MEMBER, namenode=name, user=user)
                for name, user in (("nn1", "hdfs"), ("nn2", "root"))
            }
        ),
        {"users of ZKFCs": W},
    ),
    "a failover failed": (
        entries(dataclasses.replace(RECENT, result=FailoverResult.FAILED, failure="x")),
        {"failovers": F},
    ),
    "flapping": (entries(RECENT, RECENT, RECENT), {"failovers": W}),
    "asked for three times": (entries(*[dataclasses.replace(RECENT, actor="ann")] * 3), {}),
    "long ago": (entries(RECORD, RECORD, RECORD), {}),
    "by hand": ({"automatic_failover": False}, {"failover ready": W}),
    "no journal": ({"journalnodes": ()}, {"journal": U}),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_situation_is_told_by_its_check(situation: str) -> None:
    changes, expected = SITUATIONS[situation]
    view = dataclasses.replace(GOOD, **changes)  # type: ignore[arg-type]
    assert worse(view) == expected


def test_what_is_not_well_says_what_to_do() -> None:
    for changes, _ in SITUATIONS.values():
        view = dataclasses.replace(GOOD, **changes)  # type: ignore[arg-type]
        for one in check_cluster(view):
            assert bool(one.next) is (one.verdict in (W, F)), one


BARE: dict[str, object] = {"formatted": False}
FORMATTING: dict[str, tuple[list[dict[str, object]], str]] = {
    "one lost its disk": ([BARE], "nnha journal format --node j1:1"),
    "one more is down": ([BARE, {"error": GONE}], "start the JournalNodes that do not answer"),
    "two lost theirs": ([BARE, BARE], "start the JournalNodes that do not answer"),
    "none has a journal": ([BARE] * 3, "--initialize-shared-edits"),
}


@pytest.mark.parametrize("situation", FORMATTING)
def test_shared_edits_are_initialized_only_where_no_journalnode_holds_any(situation: str) -> None:
    """Keep acknowledged edits: initializing next to a node that holds some would replace them."""
    rows, remedy = FORMATTING[situation]
    view = dataclasses.replace(GOOD, **journals(*rows))  # type: ignore[arg-type]
    (majority,) = [one for one in check_cluster(view) if one.check == "journal majority"]
    assert remedy in majority.next
    assert ("initialize" in majority.next) is (situation == "none has a journal")


@pytest.mark.parametrize(
    ("skew", "verdict"), [(0.0, Severity.OK), (1.9, Severity.OK), (5.0, W), (-5.0, W), (None, U)]
)
def test_a_clock_that_differs_is_told(skew: float | None, verdict: Severity) -> None:
    assert [one.verdict for one in check_clocks([("nn1", "h1", skew)])] == [verdict]


def configured(folder: Path, **extra: str) -> Configuration:
    named = {key.replace("_", "."): value for key, value in extra.items()}
    write_configuration(folder, PORTS, **named)
    return load_configuration(folder, environment={})


def verdicts(found: list[Finding]) -> set[Severity]:
    return {one.verdict for one in found}


@pytest.mark.parametrize(("principal", "warned"), [("", True), ("HTTP/_HOST@R", False)])
def test_kerberos_without_a_principal_of_pages_is_told(
    tmp_path: Path, principal: str, warned: bool
) -> None:
    given = {
        "hadoop_security_authentication": "kerberos",
        "dfs_web_authentication_kerberos_principal": principal,
    }
    found = [one.check for one in local.check_security(configured(tmp_path, **given))]
    assert ("tickets on pages" in found) is warned
    assert found[-1] == "security"


@pytest.mark.parametrize(
    ("given", "verdict"), [({}, Severity.OK), ({"nnha_security_mode": "insecure-i-know"}, W)]
)
def test_daemons_that_believe_everybody_are_told(
    given: dict[str, str], verdict: Severity, tmp_path: Path
) -> None:
    (found,) = local.check_security(configured(tmp_path, **given))
    assert (found.check, found.verdict) == ("security", verdict)


FENCING: dict[str, tuple[str, set[Severity]]] = {
    "none": ("", {F}),
    "true": ("shell(/bin/true)", {Severity.OK, F}),
    "edits only": ("journal-epoch", {Severity.OK, W}),
    "a program": ("shell(/bin/ls /)", {Severity.OK}),
    "no such program": ("shell(/no/such/program x)", {W}),
    "kill, then epoch": ("kill\njournal-epoch", {Severity.OK}),
    "ssh without a key": ("sshfence", {F}),
    "nonsense": ("zap(", {F}),
}


@pytest.mark.parametrize("situation", FENCING)
def test_fencing_that_cannot_work_or_lies_is_told(situation: str, tmp_path: Path) -> None:
    methods, expected = FENCING[situation]
    configuration = configured(tmp_path, dfs_ha_fencing_methods=methods)
    assert verdicts(list(local.check_fencing(configuration, "ns1"))) == expected


def test_credentials_belong_into_a_file_of_ones_own(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("digest:me:word")
    for mode, expected in ((0o644, W), (0o600, Severity.OK)):
        secret.chmod(mode)
        configuration = configured(tmp_path, ha_zookeeper_auth=f"@{secret}")
        assert verdicts(list(local.check_credentials(configuration, "ns1"))) == {expected}
    configuration = configured(tmp_path, ha_zookeeper_auth="digest:me:word")
    found = list(local.check_credentials(configuration, "ns1"))
    assert verdicts(found) == {W}
    assert "word" not in found[0].found
    assert list(local.check_credentials(configured(tmp_path), "ns1")) == []


def test_files_by_which_no_client_finds_the_active_are_told(tmp_path: Path) -> None:
    (found,) = local.check_clients(configured(tmp_path))
    assert found.verdict is Severity.WARN
    assert "dfs.client.failover.proxy.provider.ns1 is not set" in found.found
    proxy = {"dfs_client_failover_proxy_provider_ns1": "a.Class"}
    assert list(local.check_clients(configured(tmp_path, **proxy))) == []


def test_settings_without_effect_are_named_and_are_no_fault(tmp_path: Path) -> None:
    assert list(local.check_ignored(configured(tmp_path))) == []
    (found,) = local.check_ignored(configured(tmp_path, io_serializations="true"))
    assert found.verdict is Severity.OK
    assert found.found == "1 known to Hadoop, not used by nnha: io.serializations"
    assert found.next == "nnha config validate says why"


def test_a_misspelt_key_and_a_bad_value_are_told(tmp_path: Path) -> None:
    shared = {"dfs_namenode_shared_edits_dir": "qjournal://j1:1;j2:1;j3:1/ns1"}
    assert verdicts(list(local.check_configuration(configured(tmp_path, **shared)))) == {
        Severity.OK
    }
    misspelt = configured(tmp_path, dfs_ha_fencing_method="kill", **shared)
    assert verdicts(list(local.check_configuration(misspelt))) == {W}
    bad = configured(tmp_path, dfs_namenode_replication_min="soon", **shared)
    assert verdicts(list(local.check_configuration(bad))) == {F}


async def test_a_name_that_does_not_resolve_is_told(tmp_path: Path) -> None:
    configuration = configured(tmp_path)
    assert verdicts(await local.check_names(configuration, "ns1")) == {Severity.OK}
    strange = configuration.with_overrides(("dfs.namenode.rpc-address.ns1.nn1=no.such.invalid:1",))
    assert verdicts(await local.check_names(strange, "ns1")) == {F}


AUTO = ("-D", "dfs.ha.automatic-failover.enabled=true")


@pytest.mark.zookeeper
async def test_znodes_that_anybody_may_change_are_told_and_closed_ones_are_not(
    scope: Scope,
) -> None:
    told = await nnha("doctor", *scope.words, *AUTO, "-o", "json")
    assert told.code == 8  # no NameNode runs
    assert schema.faults("doctor", told.document) == []
    assert rights(told.document) == ["warn"]
    settings = dataclasses.replace(
        scope.settings,
        scope=f"{scope.settings.scope}-closed/ns1",
        acl=parse_acl("auth::rwcda"),
        auth=parse_auth("digest:me:word"),
    )
    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)
    closed = ("-D", f"ha.zookeeper.parent-znode={scope.settings.scope}-closed")
    words = (*scope.words, *AUTO, *closed, "-o", "json")
    (scope.conf_dir / "auth").write_text("digest:me:word")
    known = await nnha("doctor", *words, "-D", f"ha.zookeeper.auth=@{scope.conf_dir / 'auth'}")
    assert rights(known.document) == ["ok"]


@pytest.mark.zookeeper
async def test_w22_a_second_zkfc_of_a_namenode_is_read_from_zookeeper_and_told(
    scope: Scope,
) -> None:
    settings = scope.settings
    async with connected(settings, deadline_seconds=30.0) as session:
        await ensure_parent(session, settings)
        await session.create(second_zkfcs_path(settings))
        path = f"{second_zkfcs_path(settings)}/nn1-7"
        assert await session.create(path, encode_member(MEMBER), ephemeral=True) == Done(None)
        told = await nnha("doctor", *scope.words, *AUTO, "-o", "json")
        shown = await nnha("status", *scope.words, *AUTO)
    found = [one["found"] for one in told.document["checks"] if "a second ZKFC" in one["found"]]
    assert len(found) == 1
    assert f"process {MEMBER.pid} on {MEMBER.host}" in found[0]
    assert "a second ZKFC of" in shown.out


def rights(document: dict[str, list[dict[str, str]]]) -> list[str]:
    return of("znode rights", document)


def of(check: str, document: dict[str, list[dict[str, str]]]) -> list[str]:
    return [one["verdict"] for one in document["checks"] if one["check"] == check]


@pytest.mark.zookeeper
async def test_an_active_without_its_breadcrumb_is_told(scope: Scope) -> None:
    words = ("doctor", *scope.words, *AUTO, "-o", "json")
    assert of("breadcrumb", (await nnha(*words)).document) == []  # the lock is free
    async with connected(scope.settings, deadline_seconds=30.0) as session:
        value_of(await session.create(scope.settings.lock, b"nn1", ephemeral=True), "lock")
        assert of("breadcrumb", (await nnha(*words)).document) == ["warn"]
        value_of(await session.create(scope.settings.breadcrumb, b"nn2"), "breadcrumb")
        assert of("breadcrumb", (await nnha(*words)).document) == ["warn", "warn"]
        value_of(await session.write(scope.settings.breadcrumb, b"nn1", version=-1), "breadcrumb")
        found = (await nnha(*words)).document["checks"]
        same, foreign = [one for one in found if one["check"] == "breadcrumb"]
        assert (same["verdict"], foreign["verdict"]) == ("ok", "warn")
        assert foreign["found"].startswith("it cannot be read (")
        own = encode(ActiveNodeInfo("ns1", "nn1", "127.0.0.1", PORTS["rpc-nn1"], 8019))
        for znode in (scope.settings.breadcrumb, scope.settings.lock):
            value_of(await session.write(znode, own, version=-1), znode)
        assert of("breadcrumb", (await nnha(*words)).document) == ["ok"]


async def test_the_text_has_each_check_and_quiet_only_what_is_not_well(tmp_path: Path) -> None:
    write_configuration(tmp_path, PORTS)
    told = await nnha("doctor", "--conf-dir", str(tmp_path))
    assert told.code == 8
    assert "OK       names" in told.out
    assert "FAIL     one active" in told.out
    quiet = await nnha("doctor", "--conf-dir", str(tmp_path), "-q")
    assert "OK       names" not in quiet.out
    assert "FAIL     one active" in quiet.out


async def test_clocks_are_compared_by_the_date_of_the_daemons_answers(cluster: Cluster) -> None:
    told = await nnha("doctor", "--conf-dir", str(cluster.conf_dir), "-o", "json")
    found = [one for one in told.document["checks"] if one["check"] == "clocks"]
    assert [(one["verdict"], one["found"]) for one in found] == [
        ("ok", "2 daemons agree with this machine to 2 s")
    ]
