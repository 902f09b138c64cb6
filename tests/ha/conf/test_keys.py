"""Keys: suffixes, defaults, expansion, misspellings, and the view of one node."""

import zipfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from xml.etree import ElementTree

import pytest

from ha.conf.configuration import Configuration, load_configuration, nodes_of
from ha.conf.errors import ConfigurationError
from ha.conf.keys import blocks as keys_blocks
from ha.conf.keys import cluster as keys
from ha.conf.keys import datanode as keys_datanode
from ha.conf.keys import files as keys_files
from ha.conf.keys import journal as keys_journal
from ha.conf.keys import namenode as keys_namenode
from ha.conf.keys.key import Key
from ha.conf.keys.table import KEYS
from ha.conf.own_user import system_user

CLUSTER = ("dfs.nameservices=ns1", "dfs.ha.namenodes.ns1=nn1,nn2")
RPC = keys.NAMENODE_RPC.name


def configured(folder: Path, *overrides: str) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    environment = {"HOME": "/home/h", "SET": "s", "EMPTY": ""}
    return load_configuration(folder, overrides, environment=environment)


def test_every_default_parses(tmp_path: Path) -> None:
    found = configured(tmp_path)
    for key in KEYS.values():
        found.get(key)


def test_the_raw_text_is_what_was_configured_and_nothing_else(tmp_path: Path) -> None:
    found = configured(tmp_path, "fs.trash.interval=${dfs.replication}m")
    assert found.raw("fs.trash.interval") == "3m"
    assert found.raw("dfs.replication") is None
    assert found.raw("no.such.key") is None


def test_the_most_specific_suffix_wins(tmp_path: Path) -> None:
    name = keys.ZKFC_PORT.name
    found = configured(tmp_path, *CLUSTER, f"{name}=1", f"{name}.ns1=2", f"{name}.ns1.nn1=3")
    assert found.get(keys.ZKFC_PORT) == 1
    assert found.get(keys.ZKFC_PORT, nameservice="ns1") == 2
    assert found.get(keys.ZKFC_PORT, nameservice="ns1", namenode="nn1") == 3
    assert found.get(keys.ZKFC_PORT, nameservice="ns1", namenode="nn2") == 2
    assert found.get(keys.ZKFC_PORT, nameservice="ns2", namenode="nn1") == 1


def test_a_suffix_outside_the_keys_scope_is_unread_and_said_to_be(tmp_path: Path) -> None:
    auto = keys.AUTO_FAILOVER.name
    found = configured(tmp_path, *CLUSTER, f"{auto}.ns1.nn1=true", "dfs.replication.ns1=2")
    assert found.get(keys.AUTO_FAILOVER, nameservice="ns1", namenode="nn1") is False
    assert found.get(keys_files.REPLICATION, nameservice="ns1") == 3
    assert [one.removeprefix("the command line (-D): ") for one in found.warnings] == [
        f"{auto} is read per nameservice, not per NameNode: .ns1.nn1 is lost",
        "dfs.replication is read without a suffix: .ns1 makes it unread",
    ]


def test_values_have_types_and_units(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        "ha.zookeeper.session-timeout.ms=6s",
        "dfs.ha.tail-edits.period=1m",
        "dfs.ha.log-roll.period=-1",
        "dfs.qjm.operations.timeout=60000",
        "dfs.journalnode.edit-cache-size.fraction=0.5f",
        "dfs.blocksize=64k",
        "ha.zookeeper.quorum=a:1, b",
    )
    assert found.get(keys.ZOOKEEPER_SESSION_TIMEOUT) == 6.0
    assert found.get(keys_namenode.TAIL_PERIOD) == 60.0
    assert found.get(keys_namenode.LOG_ROLL_PERIOD) == -1.0
    assert found.get(keys_journal.OPERATIONS_TIMEOUT) == 60.0
    assert found.get(keys_journal.CACHE_FRACTION) == 0.5
    assert found.get(keys_files.BLOCK_SIZE) == 65536
    assert [str(one) for one in found.get(keys.ZOOKEEPER_QUORUM)] == ["a:1", "b:2181"]
    assert found.get(keys_journal.WRITE_TIMEOUT) == 20.0


CARRIED = {
    "ha.zookeeper.session-timeout.ms": (keys.ZOOKEEPER_SESSION_TIMEOUT, 2**31 - 1),
    "dfs.replication": (keys_files.REPLICATION, 512),
    "dfs.bytes-per-checksum": (keys_files.BYTES_PER_CHECKSUM, 2**31 - 1),
    "dfs.client-write-packet-size": (keys_files.PACKET_SIZE, 2**31 - 1),
    "io.file.buffer.size": (keys_files.BUFFER_SIZE, 2**31 - 1),
}


@pytest.mark.parametrize("name", CARRIED)
def test_numbers_beyond_what_a_peer_can_carry_are_refused(tmp_path: Path, name: str) -> None:
    """ZooKeeper, and Java clients, which getServerDefaults gives them to, have an int for it."""
    key, most = CARRIED[name]
    configured(tmp_path, f"{name}={most}").get(key)
    with pytest.raises(ConfigurationError, match=f"{name} is '{most + 1}', .*at most"):
        configured(tmp_path, f"{name}={most + 1}").get(key)


@pytest.mark.row("W24")
def test_a_required_key_that_is_missing_is_named_with_its_suffix(tmp_path: Path) -> None:
    found = configured(tmp_path, "ha.zookeeper.quorum= ", f"{RPC}.ns1.nn2=h:2")
    assert found.require(keys.NAMENODE_RPC, nameservice="ns1", namenode="nn2").port == 2

    def missing(key: Key[Any], **node: str) -> str:
        with pytest.raises(ConfigurationError) as caught:
            found.require(key, **node)
        return str(caught.value)

    ending = " is not set. Add it to hdfs-site.xml."
    one = missing(keys.NAMENODE_RPC, nameservice="ns1", namenode="nn1")
    assert one == f"{RPC}.ns1.nn1 (client RPC){ending}"
    assert missing(keys.NAMENODE_RPC, nameservice="ns1") == f"{RPC}.ns1 (client RPC){ending}"
    purpose = keys.ZOOKEEPER_QUORUM.doc
    assert missing(keys.ZOOKEEPER_QUORUM) == f"ha.zookeeper.quorum ({purpose}){ending}"
    required = keys_namenode.EDITS_REQUIRED
    assert missing(required) == f"dfs.namenode.edits.dir.required{ending}"


def test_whether_a_key_is_set_is_asked_for_one_node(tmp_path: Path) -> None:
    found = configured(tmp_path, f"{RPC}.ns1.nn2=h:2")
    nodes = [(None, None), ("ns1", None), ("ns1", "nn1"), ("ns1", "nn2")]
    told = [found.is_set(keys.NAMENODE_RPC, nameservice=ns, namenode=nn) for ns, nn in nodes]
    assert told == [False, False, False, True]
    assert not found.is_set(keys_files.REPLICATION)


EXPANSIONS = {
    "another key": ("${a}/x", "A/x"),
    "a default of Hadoop's": ("${dfs.replication}", "3"),
    "a key that refers on": ("${b}", "A-b"),
    "the innermost first": ("${${name}}", "A"),
    "an unset name stays and ends the expansion, as in Hadoop": ("${none}${a}", "${none}${a}"),
    "a loop gives the text back": ("${loop}", "${loop}"),
    "the environment": ("${env.SET}", "s"),
    "an unset variable with a replacement": ("${env.NONE-or}", "or"),
    "an empty variable is set for -": ("${env.EMPTY-or}", ""),
    "an empty variable is unset for :-": ("${env.EMPTY:-or}", "or"),
    "an unset variable without replacement stays": ("${env.NONE}", "${env.NONE}"),
    "a set variable with a replacement": ("${env.SET:-or}", "s"),
    "no variable, but a key": ("${env.}", "E"),
    "the user's home": ("${user.home}", "/home/h"),
    "the user": ("${user.name}", system_user()),
    "where temporary files are": ("${java.io.tmpdir}", gettempdir()),
    "an old name that is set": ("${fs.default.name}/x", "hdfs://ns1/x"),
    "an old name that is not set": ("${dfs.replication.min}", "1"),
    "twenty substitutions are allowed": ("${a}" * 20, "A" * 20),
}


@pytest.mark.parametrize("case", EXPANSIONS.values(), ids=EXPANSIONS.keys())
def test_variables_expand_by_hadoops_rules(tmp_path: Path, case: tuple[str, str]) -> None:
    text, expected = case
    found = configured(
        tmp_path,
        *("a=A", "b=${a}-b", "name=a", "loop=x${loop}", "env.=E", "fs.default.name=hdfs://ns1"),
        f"hadoop.tmp.dir={text}",
    )
    assert found.raw("hadoop.tmp.dir") == expected


def test_too_many_substitutions_are_an_error_and_not_a_hang(tmp_path: Path) -> None:
    found = configured(tmp_path, "a=A", "hadoop.tmp.dir=" + "${a}" * 21)
    with pytest.raises(ConfigurationError, match=r"is '\$\{a\}.*more than 20 substitutions"):
        found.raw("hadoop.tmp.dir")
    with pytest.raises(ConfigurationError, match="more than 20 substitutions"):
        found.get(keys_namenode.NAME_DIR)


def test_substitutions_cannot_fill_the_memory(tmp_path: Path) -> None:
    most = "x" * 1024 * 1024
    found = configured(tmp_path, f"k={most}", "all=${k}", "more=y${k}")
    assert found.raw("all") == most
    with pytest.raises(ConfigurationError, match="grows beyond"):
        found.raw("more")


@pytest.mark.parametrize(("length", "shown"), [(200, "x" * 200), (201, "x" * 200 + "...")])
def test_a_bad_value_is_told_under_its_own_key_and_not_at_any_length(
    tmp_path: Path, length: int, shown: str
) -> None:
    found = configured(tmp_path, f"{keys.ZKFC_PORT.name}.ns1.nn1={'x' * length}")
    with pytest.raises(ConfigurationError) as caught:
        found.get(keys.ZKFC_PORT, nameservice="ns1", namenode="nn1")
    whole = "but it must be a whole number, for instance 3."
    assert str(caught.value) == (
        f"the command line (-D): dfs.ha.zkfc.port.ns1.nn1 is {shown!r}, {whole}"
    )


def test_a_misspelt_key_gets_a_warning_that_names_the_right_one(tmp_path: Path) -> None:
    found = configured(
        tmp_path, *CLUSTER, "dfs.namenode.rpc-adress.ns1.nn1=h:1", "ha.zookeper.quorum=h:1"
    )
    first, second = found.warnings
    assert "Did you mean dfs.namenode.rpc-address.ns1.nn1?" in first
    assert "Did you mean ha.zookeeper.quorum?" in second


def test_a_node_that_does_not_exist_is_noticed_in_a_suffix(tmp_path: Path) -> None:
    names = [f"{RPC}.ns1.nn3", f"{RPC}.ns2.nn1", f"{RPC}.ns2", "dfs.permissions.enabled.ns2"]
    found = configured(tmp_path, *CLUSTER, *(f"{name}=h:1" for name in names))
    assert [one.removeprefix("the command line (-D): ") for one in found.warnings] == [
        f"{names[0]} names no NameNode that is configured (dfs.ha.namenodes.ns1: nn1, nn2)",
        f"{names[1]} names no nameservice that is configured (dfs.nameservices: ns1)",
        f"{names[2]} names no nameservice that is configured (dfs.nameservices: ns1)",
        f"{names[3]} is not a known key. Did you mean dfs.permissions.enabled?",
    ]
    (none,) = configured(tmp_path, f"{RPC}.ns1=h:1").warnings
    assert f"Did you mean {RPC}?" in none


def test_without_a_nameservice_that_is_what_is_told_of_a_suffix_of_ours(tmp_path: Path) -> None:
    name = "nnha.zkfc.http-address.ns1.nn1"
    assert configured(tmp_path, f"{name}=h:1").warnings == (
        f"the command line (-D): {name} names a nameservice, but dfs.nameservices is not set",
    )


@pytest.mark.parametrize("named", ["dfs.nameservices", "dfs.internal.nameservices"])
def test_the_nodes_are_those_of_the_nameservices_in_either_list(tmp_path: Path, named: str) -> None:
    found = configured(tmp_path, f"{named}=ns1", CLUSTER[1], f"{RPC}.ns1.nn1=h:1")
    assert nodes_of(found) == {"ns1": ("nn1", "nn2")}
    assert found.warnings == ()


def test_ordinary_keys_of_hadoop_and_of_strangers_raise_no_doubt(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        *CLUSTER,
        "dfs.client.failover.proxy.provider.ns1=org.apache.hadoop.X",
        "dfs.namenode.edits.journal-plugin.mine=X",
        "dfs.namenode.edits.journal-plugin.qjournal2=X",
        "hadoop.proxyuser.alice.hosts=*",
        "my.own.key=1",
        "dfs.namenode.secondary.http-address=h:1",
    )
    assert found.warnings == ()
    assert configured(tmp_path, "dfs.ha.namenodes.n=nn1").warnings == ()


def test_an_unknown_key_of_ours_is_an_error_naming_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Did you mean nnha\.standby\.park-timeout\?"):
        configured(tmp_path, "nnha.standby.park-time=3s")
    with pytest.raises(ConfigurationError, match="Known are"):
        configured(tmp_path, "nnha.qqq=3s")


OLD_NAMES = {
    "dfs.data.dir": keys_datanode.DATA_DIR,
    "dfs.datanode.max.xcievers": keys_datanode.MAX_CONNECTIONS,
    "dfs.name.dir": keys_namenode.NAME_DIR,
    "dfs.name.dir.restore": keys_namenode.NAME_DIR_RESTORE,
    "dfs.namenode.replication.pending.timeout-sec": keys_blocks.COPY_TIMEOUT,
    "dfs.replication.pending.timeout.sec": keys_blocks.COPY_TIMEOUT,
    "dfs.safemode.extension": keys_blocks.SAFE_EXTENSION,
    "dfs.write.packet.size": keys_files.PACKET_SIZE,
    "fs.default.name": keys.FS_DEFAULT,
    "heartbeat.recheck.interval": keys_blocks.RECHECK,
    "io.bytes.per.checksum": keys_files.BYTES_PER_CHECKSUM,
    "slave.host.name": keys_datanode.HOST_NAME,
}


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_still_works_with_a_warning_that_stays(tmp_path: Path, old: str) -> None:
    found = configured(tmp_path, f"{old}=7").with_overrides(["my.own.key=1"])
    assert found.raw(OLD_NAMES[old].name) == "7"
    assert found.where(OLD_NAMES[old]) == f"the command line (-D): {OLD_NAMES[old].name}"
    assert found.warnings == (
        f"the command line (-D): {old} is an old name. Write {OLD_NAMES[old].name}.",
    )


def test_one_nodes_view_holds_its_suffixed_keys_under_their_generic_names(tmp_path: Path) -> None:
    found = configured(
        tmp_path, *CLUSTER, f"{RPC}.ns1.nn1=h:1", f"{RPC}.ns1.nn2=h:2", "x=${a}", "a=A"
    )
    view = found.promoted("ns1", "nn2")
    assert view[RPC] == "h:2"
    assert view["dfs.ha.namenode.id"] == "nn2"
    assert view["dfs.nameservice.id"] == "ns1"
    assert view["x"] == "A"
    assert found.scoped("ns1", "nn2").require(keys.NAMENODE_RPC).port == 2
    assert found.scoped("ns1", "nn2").where(keys.NAMENODE_RPC) == f"the command line (-D): {RPC}"
    assert "dfs.ha.namenode.id" not in found.promoted("ns1", None)


def test_our_defaults_are_those_of_hadoop_where_its_own_table_is_at_hand() -> None:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (jar,) = Path(spec.origin).parent.glob("jars/hadoop-client-api-*.jar")
    with zipfile.ZipFile(jar) as archive:
        table = ElementTree.fromstring(archive.read("core-default.xml"))
    theirs = {
        one.findtext("name", ""): one.findtext("value") or "" for one in table.iter("property")
    }
    # Left empty there, because the code falls back to an older key.
    del theirs["hadoop.zk.ssl.enabled"]
    common = theirs.keys() & KEYS.keys()
    assert len(common) > 20
    assert {name: KEYS[name].default.strip() for name in common} == {
        name: theirs[name].strip() for name in common
    }
