"""Keys: suffixes, defaults, expansion, misspellings, and the view of one node."""

import zipfile
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import cluster as keys
from ha.conf.keys import files as keys_files
from ha.conf.keys import journal as keys_journal
from ha.conf.keys import namenode as keys_namenode
from ha.conf.keys.table import KEYS

CLUSTER = ("dfs.nameservices=ns1", "dfs.ha.namenodes.ns1=nn1,nn2")


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
    assert len(found.warnings) == 2


def test_values_have_types_and_units(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        "ha.zookeeper.session-timeout.ms=6s",
        "dfs.ha.tail-edits.period=1m",
        "dfs.ha.log-roll.period=-1",
        "dfs.blocksize=64k",
        "ha.zookeeper.quorum=a:1, b",
    )
    assert found.get(keys.ZOOKEEPER_SESSION_TIMEOUT) == 6.0
    assert found.get(keys_namenode.TAIL_PERIOD) == 60.0
    assert found.get(keys_namenode.LOG_ROLL_PERIOD) == -1.0
    assert found.get(keys_files.BLOCK_SIZE) == 65536
    assert [str(one) for one in found.get(keys.ZOOKEEPER_QUORUM)] == ["a:1", "b:2181"]
    assert found.get(keys_journal.WRITE_TIMEOUT) == 20.0


@pytest.mark.row("W24")
def test_a_required_key_that_is_missing_is_named_with_its_suffix(tmp_path: Path) -> None:
    found = configured(tmp_path, "ha.zookeeper.quorum= ")
    with pytest.raises(ConfigurationError, match=r"dfs\.namenode\.rpc-address\.ns1\.nn1 .*not set"):
        found.require(keys.NAMENODE_RPC, nameservice="ns1", namenode="nn1")
    with pytest.raises(ConfigurationError, match="not set"):
        found.require(keys.ZOOKEEPER_QUORUM)


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
    "the user's home": ("${user.home}", "/home/h"),
    "twenty substitutions are allowed": ("${a}" * 20, "A" * 20),
}


@pytest.mark.parametrize("case", EXPANSIONS.values(), ids=EXPANSIONS.keys())
def test_variables_expand_by_hadoops_rules(tmp_path: Path, case: tuple[str, str]) -> None:
    text, expected = case
    found = configured(
        tmp_path, "a=A", "b=${a}-b", "name=a", "loop=x${loop}", f"hadoop.tmp.dir={text}"
    )
    assert found.raw("hadoop.tmp.dir") == expected


def test_too_many_substitutions_are_an_error_and_not_a_hang(tmp_path: Path) -> None:
    found = configured(tmp_path, "a=A", "hadoop.tmp.dir=" + "${a}" * 21)
    with pytest.raises(ConfigurationError, match="more than 20 substitutions"):
        found.raw("hadoop.tmp.dir")
    with pytest.raises(ConfigurationError, match="more than 20 substitutions"):
        found.get(keys_namenode.NAME_DIR)


def test_substitutions_cannot_fill_the_memory(tmp_path: Path) -> None:
    doubling = [f"k{n}=" + f"${{k{n + 1}}}" * 2 for n in range(18)]
    found = configured(tmp_path, *doubling, "k18=" + "x" * 400_000, "a=${k17}${k17}")
    with pytest.raises(ConfigurationError, match="grows beyond"):
        found.raw("a")


def test_a_misspelt_key_gets_a_warning_that_names_the_right_one(tmp_path: Path) -> None:
    found = configured(
        tmp_path, *CLUSTER, "dfs.namenode.rpc-adress.ns1.nn1=h:1", "ha.zookeper.quorum=h:1"
    )
    first, second = found.warnings
    assert "Did you mean dfs.namenode.rpc-address.ns1.nn1?" in first
    assert "Did you mean ha.zookeeper.quorum?" in second


def test_a_node_that_does_not_exist_is_noticed_in_a_suffix(tmp_path: Path) -> None:
    name = keys.NAMENODE_RPC.name
    found = configured(tmp_path, *CLUSTER, f"{name}.ns1.nn3=h:1", f"{name}.ns2.nn1=h:1")
    first, second = found.warnings
    assert "names no NameNode" in first
    assert "nn1, nn2" in first
    assert "names no nameservice" in second


def test_ordinary_keys_of_hadoop_and_of_strangers_raise_no_doubt(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        *CLUSTER,
        "dfs.client.failover.proxy.provider.ns1=org.apache.hadoop.X",
        "dfs.namenode.edits.journal-plugin.mine=X",
        "hadoop.proxyuser.alice.hosts=*",
        "my.own.key=1",
        "dfs.namenode.secondary.http-address=h:1",
    )
    assert found.warnings == ()


def test_an_unknown_key_of_ours_is_an_error_naming_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Did you mean nnha\.standby\.park-timeout\?"):
        configured(tmp_path, "nnha.standby.park-time=3s")
    with pytest.raises(ConfigurationError, match="Known are"):
        configured(tmp_path, "nnha.qqq=3s")


def test_an_old_name_still_works_with_a_warning(tmp_path: Path) -> None:
    found = configured(tmp_path, "fs.default.name=hdfs://ns1")
    assert found.get(keys.FS_DEFAULT) == "hdfs://ns1"
    assert "Write fs.defaultFS" in found.warnings[0]


def test_one_nodes_view_holds_its_suffixed_keys_under_their_generic_names(tmp_path: Path) -> None:
    name = keys.NAMENODE_RPC.name
    found = configured(
        tmp_path, *CLUSTER, f"{name}.ns1.nn1=h:1", f"{name}.ns1.nn2=h:2", "x=${a}", "a=A"
    )
    view = found.promoted("ns1", "nn2")
    assert view[name] == "h:2"
    assert view["dfs.ha.namenode.id"] == "nn2"
    assert view["dfs.nameservice.id"] == "ns1"
    assert view["x"] == "A"
    assert found.scoped("ns1", "nn2").require(keys.NAMENODE_RPC).port == 2


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
