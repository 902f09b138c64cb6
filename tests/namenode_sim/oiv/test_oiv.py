"""The offline image viewer against what Hadoop's printed, and against what the namespace says."""

import io
import json
import re
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from namenode_sim.image.container import read_summary, section_messages
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.oiv.command import oiv
from namenode_sim.oiv.elements import escape
from namenode_sim.oiv.values import csv_field, size_text, utc_date
from namenode_sim.oiv.viewer import PROCESSORS, Options, process
from tests.namenode_sim.image.image_world import real, rich_namespace, saved

DYNAMOMETER = "fsimage/fsimage_0000000000000061740"


def shown(image: bytes, name: str, options: Options | None = None) -> str:
    out = io.StringIO()
    process(PROCESSORS[name], io.BytesIO(image), out, options or Options())
    return out.getvalue()


def test_a_view_never_takes_the_image_s_place(tmp_path: Path) -> None:
    image = tmp_path / "fsimage_7"
    image.write_bytes(saved(rich_namespace()))
    before = image.read_bytes()
    (tmp_path / "link").symlink_to(image)
    image.with_name("fsimage.tmp").hardlink_to(image)
    for target in (image, tmp_path / "link", tmp_path / "fsimage"):
        done = CliRunner().invoke(oiv, ["-i", str(image), "-o", str(target), "-p", "XML"])
        assert (done.exit_code, "overwrite the image" in done.output) == (2, True)
        assert image.read_bytes() == before


def test_xml_is_what_hadoop_printed_but_for_what_changed_when_the_image_was_saved_again() -> None:
    """Expect three other lines: Dynamometer's image was saved again after it was printed."""
    printed = re.sub(r"<!--.*?-->\n", "", real(f"{DYNAMOMETER}.xml").read_text(), flags=re.DOTALL)
    ours = shown(real(DYNAMOMETER).read_bytes(), "XML").splitlines()
    theirs = printed.splitlines()
    only_theirs = [line for line in theirs if line not in set(ours)]
    only_ours = [line for line in ours if line not in set(theirs)]
    user = (
        "<inode><id>16388</id><type>DIRECTORY</type><name>user</name><mtime>{}</mtime>"
        "<permission>hdfs:hdfs:rwxr-x---</permission><nsquota>-1</nsquota><dsquota>-1</dsquota>"
        "</inode>"
    )
    counters = (
        "<genstampV1>1000</genstampV1><genstampV2>11100</genstampV2>"
        "<genstampV1Limit>0</genstampV1Limit>"
        "<lastAllocatedBlockId>1073751924</lastAllocatedBlockId><txid>{}</txid></NameSection>"
    )
    # A newer Hadoop saved it, which leaves out a section of diffs where there are no snapshots.
    no_diffs = "<SnapshotDiffSection><diff><inodeid>16385</inodeid></diff></SnapshotDiffSection>"
    assert only_theirs == [counters.format(61740), user.format(1494453399239), no_diffs]
    assert only_ours == [counters.format(61967), user.format(1517869790959)]
    assert [line for line in theirs if line in set(ours)] == [
        line for line in ours if line in set(theirs)
    ]


@pytest.mark.parametrize("layout", [-60, -65, -67])
def test_xml_and_json_lines_say_the_same(layout: int) -> None:
    image = saved(rich_namespace(), layout)
    root = ET.fromstring(shown(image, "XML", Options(hadoop=3)))
    lines = [json.loads(line) for line in shown(image, "JSON").splitlines()]
    inodes = [
        line["inode"] for line in lines if line["section"] == "INodeSection" and "inode" in line
    ]
    printed = root.findall("INodeSection/inode")
    assert len(inodes) == len(printed) == 6
    for one, element in zip(inodes, printed, strict=True):
        for child in element:
            if len(child) == 0:
                assert str(one[child.tag]) == (child.text or "")
    filled = {section.tag for section in root if len(section)}
    assert {line["section"] for line in lines} == filled


def test_hadoop_3_names_everything_of_an_inode() -> None:
    lines = map(json.loads, shown(saved(rich_namespace(), -67), "JSON").splitlines())
    by_name = {
        line["inode"]["name"]: line["inode"]
        for line in lines
        if "inode" in line and "name" in line["inode"]
    }
    closed, directory = by_name["closed"], by_name["d"]
    assert closed["permission"] == "alice:users:0660"
    assert closed["acls"] == ["user:bob:rw-", "group::r--", "group:bob:r--"]
    assert closed["storagePolicyId"] == 12
    assert [block["numBytes"] for block in closed["blocks"]] == [256, 9]
    assert directory["nsquota"] == 100
    assert directory["typeQuota"] == [{"type": "SSD", "quota": 2**30}]
    assert {"ns": "RAW", "name": "bob", "val": "1"} in directory["xattrs"]
    assert by_name["open"]["file-under-construction"] == {
        "clientName": "client", "clientMachine": "host"
    }  # fmt: skip
    assert by_name["link"]["target"] == "/d/closed"


def test_delimited_lists_every_path_in_hadoops_columns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    __import__("time").tzset()
    table = shown(saved(rich_namespace()), "Delimited")
    head, *rows = [line.split("\t") for line in table.splitlines()]
    assert head[:2] == ["Path", "Replication"]
    assert len(head) == 12
    paths = {row[0]: row for row in rows}
    assert paths.keys() == {"/", "/d", "/d/é", "/d/open", "/d/closed", "/link"}
    assert paths["/d/closed"][1:] == [
        "2", "1970-01-01 00:00", "1970-01-01 00:00", "256", "2", "265", "0", "0",
        "-rw-rw----+", "alice", "users",
    ]  # fmt: skip
    assert paths["/d/é"][9] == "drwxrwxrwt"
    with_database = shown(saved(rich_namespace()), "Delimited", Options(temporary=tmp_path / "t"))
    assert with_database == table
    assert list(tmp_path.iterdir()) == []


def test_the_distribution_counts_each_file_once() -> None:
    options = Options(max_size=1024, step=128)
    text = shown(saved(rich_namespace()), "FileDistribution", options)
    assert text.splitlines() == [
        "Processed 0 inodes.", "Size\tNumFiles", "0\t1", "384\t1", "totalFiles = 2",
        "totalDirectories = 3", "totalBlocks = 3", "totalSpace = 530", "maxFileSize = 265",
    ]  # fmt: skip
    readable = shown(saved(rich_namespace()), "FileDistribution", Options(step=1024, readable=True))
    assert "[0 B, 0 B]\t1" in readable
    assert "(0 B, 1 KB]\t1" in readable


def _without_inode(image: bytes, number: int) -> bytes:
    """Return the image with an inode less, which only its directory still names."""
    file = io.BytesIO(image)
    section = read_summary(file).find("INODE")
    assert section is not None
    for raw in list(section_messages(file, section, ""))[1:]:
        inode = pb.INode.FromString(raw)
        if inode.id == number:
            inode.id = 99999
            changed = inode.SerializeToString()
            assert len(changed) == len(raw)
            return image.replace(raw, changed)
    raise AssertionError(number)


def test_corruption_names_the_missing_inode_and_its_directory() -> None:
    sound = saved(rich_namespace())
    assert len(shown(sound, "DetectCorruption").splitlines()) == 1
    _head, *found = shown(_without_inode(sound, 16389), "DetectCorruption").splitlines()
    assert found == [
        "MissingChild\t16386\tfalse\t/\t16385\td\tNode\t1",
        "CorruptNode\t16389\ttrue\t\t16386\t\tUnknown\t0",
    ]


def test_the_command_writes_a_whole_file_or_none(tmp_path: Path) -> None:
    image, target = tmp_path / "fsimage", tmp_path / "out.xml"
    image.write_bytes(saved(rich_namespace()))
    arguments = ["-i", str(image), "-o", str(target), "-p", "xml"]
    assert CliRunner().invoke(oiv, arguments).exit_code == 0
    before = target.read_text()
    ET.fromstring(before)
    image.write_bytes(image.read_bytes().replace(b"closed", b"cl\xffsed", 1)[:-30])
    result = CliRunner().invoke(oiv, arguments)
    assert result.exit_code == 255
    assert f"{image} cannot be viewed" in result.output
    assert target.read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fsimage", "out.xml"]
    assert CliRunner().invoke(oiv, ["-i", str(image), "-p", "Web"]).exit_code == 255
    assert CliRunner().invoke(oiv, ["-i", "nowhere", "-p", "XML"]).exit_code == 255


@settings(max_examples=150)
@given(st.data())
def test_no_damage_makes_a_viewer_raise_anything_but_its_own_errors(data: st.DataObject) -> None:
    image = bytearray(saved(rich_namespace()))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(image)))
        size = data.draw(st.integers(0, 8))
        image[start : start + size] = data.draw(st.binary(max_size=8))
    name = data.draw(st.sampled_from(sorted(PROCESSORS)))
    with suppress(ImageError):
        shown(bytes(image), name)


@pytest.mark.parametrize(
    ("millis", "date"),
    [
        (0, "1970-01-01T00:00:00.000"),
        (1494453394091, "2017-05-10T21:56:34.091"),
        (951782400000, "2000-02-29T00:00:00.000"),
        (2**63 - 1, "292278994-08-17T07:12:55.807"),
        (-1, "1969-12-31T23:59:59.999"),
    ],
)
def test_dates_are_java_s(millis: int, date: str) -> None:
    assert utc_date(millis) == date


def test_texts_are_hadoop_s() -> None:
    assert escape("a<b>&\"'\\\x01") == "a&lt;b&gt;&amp;&quot;&apos;\\005c;\\0001;"
    assert [size_text(n) for n in (0, 1023, 1024, 1536, 2**37)] == [
        "0 B", "1023 B", "1 KB", "1.50 KB", "128 GB"
    ]  # fmt: skip
    assert csv_field('a"b,c\n') == '"a""b,c%x0A"'
