"""Settings that a daemon must not ignore stop it; the others that it ignores are reported."""

from pathlib import Path

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import EVERY_DAEMON, HAZARDS, Daemon, dangers, refuse_dangers
from ha.conf.ignored import find_ignored
from ha.daemon.start_check import check_start
from tests.log_lines import captured

CLUSTER = ("dfs.nameservices=ns1", "dfs.ha.namenodes.ns1=nn1,nn2")
SERVERS = {Daemon.NAMENODE, Daemon.DATANODE, Daemon.JOURNALNODE}
BLOCKS = {Daemon.NAMENODE, Daemon.DATANODE}
LDAP = "org.apache.hadoop.security.LdapGroupsMapping"
SHELL = "org.apache.hadoop.security.ShellBasedUnixGroupsMapping"

ASKED = {
    "hadoop.security.authentication=token": EVERY_DAEMON,
    "hadoop.security.saslproperties.resolver.class=org.example.Resolver": EVERY_DAEMON,
    "hadoop.http.authentication.type=org.example.Handler": SERVERS,
    "dfs.http.policy=HTTPS_ONLY": BLOCKS,
    "hadoop.security.key.provider.path=kms://http@h:9600/kms": {Daemon.NAMENODE},
    "dfs.encryption.key.provider.uri=kms://http@h:9600/kms": {Daemon.NAMENODE},
    f"hadoop.security.group.mapping={LDAP}": {Daemon.NAMENODE},
    "dfs.namenode.edits.qjournals.resolution-enabled=true": EVERY_DAEMON,
    "dfs.namenode.edits.qjournals.resolution-enabled.ns1.nn2=true": EVERY_DAEMON,
}
HARMLESS = (
    "hadoop.security.authentication=simple",
    "hadoop.security.authentication=kerberos",
    "hadoop.security.authorization=true",
    "hadoop.http.authentication.type=simple",
    "hadoop.http.authentication.type=kerberos",
    "dfs.http.policy=HTTP_ONLY",
    "dfs.http.policy=HTTP_AND_HTTPS",
    "dfs.encrypt.data.transfer=true",
    "dfs.encrypt.data.transfer.algorithm=3des",
    "hadoop.security.key.provider.path=",
    f"hadoop.security.group.mapping={SHELL}",
    "hadoop.rpc.protection=privacy",
)


def configured(folder: Path, *overrides: str) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    return load_configuration(folder, (*CLUSTER, *overrides), environment={})


@pytest.mark.parametrize("override", ASKED)
def test_what_must_not_be_ignored_stops_whom_it_concerns(tmp_path: Path, override: str) -> None:
    found = configured(tmp_path, override)
    stopped = set()
    for daemon in Daemon:
        try:
            refuse_dangers(found, daemon)
        except ConfigurationError:
            stopped.add(daemon)
    assert stopped == ASKED[override]


@pytest.mark.parametrize("override", HARMLESS)
def test_what_asks_for_nothing_stops_nobody(tmp_path: Path, override: str) -> None:
    assert list(dangers(configured(tmp_path, override))) == []


def test_a_danger_for_all_nodes_is_told_once_and_with_its_value_as_it_is_written(
    tmp_path: Path,
) -> None:
    name = "dfs.namenode.edits.qjournals.resolution-enabled"
    (told,) = [one.told("Nobody starts") for one in dangers(configured(tmp_path, f"{name}=TRUE"))]
    assert f"{name} is true, but" in told
    for_one = f"{name}.ns1.nn2=true"
    (of_one,) = dangers(configured(tmp_path, for_one))
    assert of_one.where == "the command line (-D): " + for_one.removesuffix("=true")


def test_every_hazard_is_in_the_table(tmp_path: Path) -> None:
    found = {one.hazard.key.name for line in ASKED for one in dangers(configured(tmp_path, line))}
    assert found == {hazard.key.name for hazard in HAZARDS}


def test_the_refusal_names_key_file_and_line_what_it_means_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "hdfs-site.xml").write_text(
        "<configuration>\n<property><name>hadoop.security.authentication</name>\n"
        "<value>token</value></property></configuration>"
    )
    with pytest.raises(ConfigurationError) as refusal:
        check_start(load_configuration(tmp_path), Daemon.NAMENODE)
    assert str(refusal.value) == (
        f"{tmp_path}/hdfs-site.xml line 2: hadoop.security.authentication is token, but nnha "
        "knows simple and kerberos: it would accept any user name that a caller gives. The "
        "namenode does not start. Set it to simple or kerberos for nnha's daemons (in "
        "their configuration, or with -D hadoop.security.authentication=...)."
    )
    over = ("hadoop.security.authentication=simple",)
    check_start(load_configuration(tmp_path, over), Daemon.NAMENODE)


def test_what_is_set_and_not_used_is_told_once_with_its_suffix_and_no_stranger(
    tmp_path: Path,
) -> None:
    found = configured(
        tmp_path,
        "dfs.namenode.handler.count=50",
        "dfs.namenode.https-address.ns1.nn1=h:1",
        "dfs.namenode.list.cache.directives.num.responses=3",
        "dfs.replication=2",
        "my.own.key=1",
    )
    names = [one.name for one in find_ignored(found)]
    assert names == [
        "dfs.namenode.handler.count",
        "dfs.namenode.https-address.ns1.nn1",
        "dfs.namenode.list.cache.directives.num.responses",
    ]
    assert str(find_ignored(found)[0]) == (
        "the command line (-D): dfs.namenode.handler.count is known to Hadoop and not used by "
        "nnha: one event loop serves all calls, and there are no handler threads to count"
    )
    ending_alike = configured(tmp_path, "dfs.nameservices=append", "dfs.support.append=true")
    assert [one.name for one in find_ignored(ending_alike)] == ["dfs.support.append"]
    with captured("configuration.") as logs:
        check_start(found, Daemon.ZKFC)
        check_start(configured(tmp_path), Daemon.ZKFC)
    (told,) = logs
    assert (told["event"], told["count"], told["keys"]) == ("configuration.ignored", 3, names)


def test_a_fencing_script_still_sees_what_nnha_does_not_use_as_the_node_does(
    tmp_path: Path,
) -> None:
    name = "dfs.namenode.keytab.file"
    found = configured(tmp_path, f"{name}.ns1.nn1=/one", f"{name}.ns1.nn2=/two")
    assert found.warnings == ()
    assert found.promoted("ns1", "nn2")[name] == "/two"
