"""Hadoop's XML files: what they may contain, what overrides what, and how faults are reported."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ha.conf import reader
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import cluster as keys
from ha.conf.keys import files as keys_files
from ha.conf.keys.table import KEYS

PROPERTY = "<property><name>{}</name><value>{}</value>{}</property>"


def xml(*properties: tuple[str, str], body: str = "") -> str:
    inner = "\n".join(PROPERTY.format(name, value, "") for name, value in properties)
    return (
        '<?xml version="1.0"?>\n'
        '<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n'
        f"{inner}\n{body}\n</configuration>\n"
    )


def load(folder: Path, hdfs: str, core: str | None = None, *overrides: str) -> Configuration:
    (folder / "hdfs-site.xml").write_text(hdfs)
    if core is not None:
        (folder / "core-site.xml").write_text(core)
    return load_configuration(folder, overrides, environment={"HOME": "/home/h", "SET": "s"})


def refused(folder: Path, hdfs: str, *overrides: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, hdfs, None, *overrides)
    return str(caught.value)


def test_hdfs_site_overrides_core_site_and_d_overrides_both(tmp_path: Path) -> None:
    core = xml(("dfs.replication", "1"), ("fs.trash.interval", "4"))
    hdfs = xml(("dfs.replication", "2"))
    assert load(tmp_path, hdfs, core).raw("dfs.replication") == "2"
    assert load(tmp_path, hdfs, core).raw("fs.trash.interval") == "4"
    assert load(tmp_path, hdfs, core, "dfs.replication=5").get(keys_files.REPLICATION) == 5


def test_a_final_value_is_kept_and_the_loser_is_named(tmp_path: Path) -> None:
    final = PROPERTY.format("dfs.replication", "1", "<final>true</final>")
    found = load(tmp_path, xml(("dfs.replication", "2")), xml(body=final))
    assert found.get(keys_files.REPLICATION) == 1
    (warning,) = found.warnings
    assert "hdfs-site.xml line 3" in warning
    assert "core-site.xml" in warning


@pytest.mark.parametrize("word", [" true ", "TRUE", "yes", "false", ""])
def test_only_the_word_true_makes_final_as_in_hadoop(tmp_path: Path, word: str) -> None:
    final = PROPERTY.format("dfs.replication", "1", f"<final>{word}</final>")
    final += f'<property name="dfs.replication.max" value="8" final="{word}"/>'
    later = xml(("dfs.replication", "2"), ("dfs.replication.max", "9"))
    found = load(tmp_path, later, xml(body=final))
    assert (found.raw("dfs.replication"), found.raw("dfs.replication.max")) == ("2", "9")
    assert found.warnings == ()


def test_the_command_line_beats_even_final_values_as_in_hadoop(tmp_path: Path) -> None:
    final = PROPERTY.format("dfs.replication", "1", "<final>true</final>")
    found = load(tmp_path, xml(body=final)).with_overrides(["dfs.replication=7"])
    assert found.get(keys_files.REPLICATION) == 7
    assert found.warnings == ()


def test_the_last_value_of_one_file_counts_and_a_missing_value_counts_as_nothing(
    tmp_path: Path,
) -> None:
    nothing = "<property><name>dfs.replication</name></property>"
    doubled = xml(("dfs.replication", "1"), ("dfs.replication", "2"), body=nothing)
    assert load(tmp_path, doubled).get(keys_files.REPLICATION) == 2


def test_properties_may_be_attributes_and_unknown_elements_are_passed_over(tmp_path: Path) -> None:
    body = """
      <property name="dfs.replication" value="9" final="true"/>
      <property><name> dfs.blocksize </name><value>64k</value>
        <description>a <b>bold</b> word</description></property>
      <strange><a/><property><name>strange.one</name><value>1</value></property></strange>
      <fallback><property><name>strange.two</name><value>1</value></property></fallback>
      <strange><property><name>strange.three</name><value>1</value></property></strange>
      <configuration><property><name>dfs.replication.max</name><value>8</value></property>
      </configuration>"""
    found = load(tmp_path, xml(body=body))
    assert found.get(keys_files.REPLICATION) == 9
    assert found.get(keys_files.BLOCK_SIZE) == 65536
    assert found.get(keys_files.REPLICATION_MAX) == 8
    assert not [name for name in found.settings if name.startswith("strange")]


def test_a_folder_is_needed_and_the_environment_may_name_it(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(xml(("dfs.replication", "4")))
    found = load_configuration(None, environment={"HADOOP_CONF_DIR": str(tmp_path)})
    assert found.raw("dfs.replication") == "4"
    with pytest.raises(ConfigurationError, match="HADOOP_CONF_DIR"):
        load_configuration(None, environment={})
    with pytest.raises(ConfigurationError, match="holds neither"):
        load_configuration(tmp_path / "nowhere", environment={})
    # As a folder that we may not enter: to look for a file in it is an error of the system.
    with pytest.raises(ConfigurationError, match=r"cannot be looked for: .*who may enter"):
        load_configuration(tmp_path / ("n" * 300), environment={})


def test_an_include_stands_where_it_is_written_and_is_relative_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.xml").write_text(
        xml(("dfs.replication", "5"), body='<xi:include href="b.xml"/>')
    )
    (tmp_path / "sub/b.xml").write_text(xml(("dfs.replication.max", "6")))
    found = load(tmp_path, xml(("dfs.replication", "1"), body='<xi:include href="sub/a.xml"/>'))
    assert found.get(keys_files.REPLICATION) == 5
    assert found.get(keys_files.REPLICATION_MAX) == 6


def test_a_fallback_counts_only_when_the_file_is_missing(tmp_path: Path) -> None:
    fallback = PROPERTY.format("dfs.replication", "5", "")
    include = f'<xi:include href="a.xml"><xi:fallback>{fallback}</xi:fallback></xi:include>'
    document = xml(("dfs.replication", "1"), body=include)
    assert load(tmp_path, document).get(keys_files.REPLICATION) == 5
    (tmp_path / "a.xml").write_text(xml())
    assert load(tmp_path, document).get(keys_files.REPLICATION) == 1
    behind = PROPERTY.format("dfs.replication.max", "7", "")
    document = xml(("dfs.replication", "1"), body=include + behind)
    assert load(tmp_path, document).get(keys_files.REPLICATION_MAX) == 7


def test_a_fallback_may_hold_another_include_and_an_include_be_named_by_its_url(
    tmp_path: Path,
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a file.xml").write_text(xml(("dfs.replication", "5")))
    inner = f'<xi:include href="file://{tmp_path}/sub/a%20file.xml"/>'
    for fallback in (
        inner,
        f'<xi:include href="b.xml"><xi:fallback>{inner}</xi:fallback></xi:include>',
    ):
        outer = f'<xi:include href="a.xml"><xi:fallback>{fallback}</xi:fallback></xi:include>'
        assert load(tmp_path, xml(body=outer)).get(keys_files.REPLICATION) == 5
    inner = inner.replace("/>", "><xi:fallback/></xi:include>")
    around = f'<xi:include href="gone.xml">{inner}</xi:include>'
    assert "gone.xml" in refused(tmp_path, xml(body=around))


def chained(folder: Path, length: int) -> None:
    for number in range(length):
        body = f'<xi:include href="{number + 1}.xml"/>'
        (folder / f"{number}.xml").write_text(xml(body=body))
    (folder / f"{length}.xml").write_text(xml(("a", "1")))


def test_includes_may_be_ten_deep_and_a_hundred_files(tmp_path: Path) -> None:
    chained(tmp_path, 10)
    assert len(reader.read_settings(tmp_path / "0.xml")) == 1
    chained(tmp_path, 11)
    with pytest.raises(ConfigurationError, match="too deeply"):
        reader.read_settings(tmp_path / "0.xml")
    (tmp_path / "a.xml").write_text(xml(("a", "1")))
    include = '<xi:include href="a.xml"/>'
    (tmp_path / "all.xml").write_text(xml(body=include * 99))
    assert len(reader.read_settings(tmp_path / "all.xml")) == 99
    (tmp_path / "all.xml").write_text(xml(body=include * 100))
    with pytest.raises(ConfigurationError, match="too often"):
        reader.read_settings(tmp_path / "all.xml")


@pytest.mark.parametrize(
    "document",
    [
        "<configuration>" + '<property name="a" value=""/>' * 100_001 + "</configuration>",
        "<configuration>" * 51 + "</configuration>" * 51,
    ],
    ids=["100,001 properties", "51 elements in one another"],
)
def test_a_file_with_too_much_in_it_is_no_configuration(tmp_path: Path, document: str) -> None:
    assert "more than" in refused(tmp_path, document)


BIG5 = '<?xml version="1.0" encoding="big5"?><configuration/>'
UNREAD = '<!DOCTYPE c SYSTEM "c.dtd"><configuration>&a;</configuration>'
LAUGHS = '<!DOCTYPE c [<!ENTITY a "xx"><!ENTITY b "&a;&a;">]><configuration>&b;</configuration>'
PASSWORD = '<!DOCTYPE c [<!ENTITY a SYSTEM "/etc/passwd">]><configuration>&a;</configuration>'
TWO_VALUES = (
    "<configuration>\n<property><name>dfs.ha.fencing.methods</name>\n"
    "<value>sshfence</value>\n<value>shell(true)</value></property></configuration>"
)

MALFORMED = {
    "two values do not make a list": (TWO_VALUES, ["line 4", "second <value>"]),
    "a tag that is not closed": ("<configuration>\n<property>", ["line 2", "not well-formed"]),
    "no configuration at the top": ("<conf/>", ["<conf>", "<configuration>"]),
    "a property without a name": (
        "<configuration><property><value>1</value></property></configuration>",
        ["without a <name>"],
    ),
    "entities that multiply": (LAUGHS, ["entities are not read"]),
    "entities that read files": (PASSWORD, ["entities are not read"]),
    "entities of a file that is not read": (UNREAD, ["entities are not read"]),
    "markup inside a value": (
        "<configuration><property><name>a</name><value>x<b/></value></property></configuration>",
        ["<b> stands inside <value>"],
    ),
    "an include from the network": (
        xml(body='<xi:include href="http://example.com/a.xml"/>'),
        ["http://example.com/a.xml", "only XML files of this machine"],
    ),
    "an include with a name that cannot be": (
        xml(body=f'<xi:include href="{"n" * 300}.xml"/>'),
        ["xi:include", "name too long"],
    ),
    "an include of nothing": (
        xml(body="<xi:include><xi:fallback/></xi:include>"),
        ["only XML files of this machine"],
    ),
    "an include of a text": (
        xml(body='<xi:include href="hdfs-site.xml" parse="text"/>'),
        ["only XML files of this machine"],
    ),
    "an include that is missing": (xml(body='<xi:include href="gone.xml"/>'), ["gone.xml"]),
    "an include that is missing, with something else than a fallback": (
        xml(body='<xi:include href="gone.xml"><xi:other/></xi:include>'),
        ["gone.xml", "does not exist"],
    ),
    "an include of itself": (
        xml(body='<xi:include href="hdfs-site.xml"/>'),
        ["too deeply or too often"],
    ),
    "an encoding that expat does not read": (BIG5, ["hdfs-site.xml cannot be read as XML"]),
    "an unknown encoding": ('<?xml version="1.0" encoding="x-none"?><a/>', ["hdfs-site.xml"]),
}


@pytest.mark.parametrize("case", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_file_is_refused_with_its_name_and_the_reason(
    tmp_path: Path, case: tuple[str, list[str]]
) -> None:
    document, expected = case
    message = refused(tmp_path, document)
    assert "hdfs-site.xml" in message
    for words in expected:
        assert words in message


def test_a_file_beyond_the_size_limit_is_not_read(tmp_path: Path) -> None:
    most = "<configuration/>".ljust(4 * 1024 * 1024)
    load(tmp_path, most)
    assert "larger than" in refused(tmp_path, most + " ")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "Is a directory"),
        (lambda path: path.symlink_to("none"), "No such file"),
        (os.mkfifo, "is a pipe"),
    ],
    ids=["a folder", "a link to nothing", "a pipe"],
)
def test_what_is_no_file_that_can_be_read_is_told(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    make(tmp_path / "hdfs-site.xml")
    (tmp_path / "core-site.xml").write_text(xml())
    with pytest.raises(ConfigurationError, match=f"hdfs-site.xml cannot be read: .*{reason}"):
        load_configuration(tmp_path, environment={})


def test_a_bad_value_names_file_line_key_value_and_shape(tmp_path: Path) -> None:
    found = load(tmp_path, xml(("ha.health-monitor.check-interval.ms", "soon")))
    with pytest.raises(ConfigurationError) as caught:
        found.get(keys.HEALTH_CHECK_INTERVAL)
    message = str(caught.value)
    for words in ("hdfs-site.xml line 3", "ha.health-monitor.check-interval.ms", "'soon'", "10s"):
        assert words in message


@pytest.mark.parametrize("override", ["dfs.replication", " =2"])
def test_an_override_without_a_key_or_an_equals_sign_is_told(tmp_path: Path, override: str) -> None:
    assert "-D key=value" in refused(tmp_path, xml(), override)


TEXT = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\ufffe\uffff")
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(values=st.dictionaries(st.sampled_from(sorted(KEYS)), TEXT, max_size=6))
def test_any_text_survives_the_way_through_xml(tmp_path: Path, values: dict[str, str]) -> None:
    escaped = [
        (name, value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
        for name, value in values.items()
    ]
    (tmp_path / "hdfs-site.xml").write_text(xml(*escaped), encoding="utf-8")
    found = {one.name: one.value for one in reader.read_settings(tmp_path / "hdfs-site.xml")}
    assert found == values


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    pieces=st.lists(
        st.sampled_from(
            [
                b"<configuration>", b"</configuration>", b"<property>", b"</property>", b"<name>",
                b"</name>", b"<value>", b"</value>", b"a", b"&amp;", b"&x;", b"<!--", b"-->",
                b"<include href='hdfs-site.xml'/>", b"<fallback>", b"</fallback>", b"<final>",
                b"</final>", b"\xff", b"<!DOCTYPE a [", b"<include>", b"</include>", b"]>",
            ]
        ),
        max_size=30,
    )
)  # fmt: skip
def test_whatever_the_file_holds_the_only_error_is_a_configuration_error(
    tmp_path: Path, pieces: list[bytes]
) -> None:
    (tmp_path / "hdfs-site.xml").write_bytes(b"<configuration>" + b"".join(pieces))
    with contextlib.suppress(ConfigurationError):
        reader.read_settings(tmp_path / "hdfs-site.xml")
