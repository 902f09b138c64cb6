"""``nnha oev``: Hadoop's XML byte for byte, statistics, and JSON lines that lose nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ha.cli.main import main
from namenode_sim.edits import ops
from namenode_sim.edits.values import XAttr, XAttrNamespace
from tests import TESTDATA
from tests.namenode_sim.edits.segments import IDS, PERMISSION, SMALL, frames, segment_bytes
from tests.needs import FILES_OF_HADOOP

STORED = TESTDATA / "edits" / "editsStored"
REAL_FILES = (
    STORED,
    TESTDATA / "name-dir" / "edits_0000000000000000001-0000000000000000026",
    TESTDATA / "name-dir" / "edits_inprogress_0000000000000000027",
)


def oev(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["oev", *map(str, arguments)])


def _real(path: Path) -> Path:
    if not path.exists():
        FILES_OF_HADOOP.skip(f"{path} is not there")
    return path


def test_xml_of_every_op_is_that_of_hadoop_byte_for_byte(tmp_path: Path) -> None:
    result = oev("-p", "xml", "-i", _real(STORED), "-o", tmp_path / "out.xml")
    assert result.exit_code == 0, result.output
    expected = STORED.with_name("editsStored.xml").read_bytes()
    assert (tmp_path / "out.xml").read_bytes() == expected


@pytest.mark.parametrize("path", REAL_FILES, ids=lambda path: path.name)
def test_json_lines_give_back_the_bytes_of_hadoops_files(tmp_path: Path, path: Path) -> None:
    assert oev("-p", "jsonl", "-i", _real(path), "-o", tmp_path / "a.jsonl").exit_code == 0
    back = oev("-p", "binary", "-i", tmp_path / "a.jsonl", "-o", tmp_path / "back")
    assert back.exit_code == 0, back.output
    assert (tmp_path / "back").read_bytes() == path.read_bytes()


def test_xml_back_to_binary_says_what_the_xml_says(tmp_path: Path) -> None:
    xml = _real(STORED.with_name("editsStored.xml"))
    assert oev("-p", "binary", "-i", xml, "-o", tmp_path / "back").exit_code == 0
    assert oev("-i", tmp_path / "back", "-o", tmp_path / "again.xml").exit_code == 0
    assert (tmp_path / "again.xml").read_bytes() == xml.read_bytes()
    # The XML of editsStored leaves nothing out: the bytes are the same too.
    assert (tmp_path / "back").read_bytes() == STORED.read_bytes()


def test_what_xml_has_no_place_for_is_lost_as_in_hadoop(tmp_path: Path) -> None:
    attribute = (XAttr(XAttrNamespace.USER, "a", b"1"),)
    op = ops.Add(1, "/f", 3, 1, 1, 1, (), PERMISSION, (), attribute, "c", "m", True, 7, 0, IDS)
    (tmp_path / "in").write_bytes(segment_bytes([op]))
    assert oev("-i", tmp_path / "in", "-o", tmp_path / "a.xml").exit_code == 0
    assert oev("-p", "binary", "-i", tmp_path / "a.xml", "-o", tmp_path / "out").exit_code == 0
    kept = ops.Add(1, "/f", 3, 1, 1, 1, (), PERMISSION, (), (), "c", "m", True, 0, 0, IDS)
    assert (tmp_path / "out").read_bytes() == segment_bytes([kept])


def test_statistics_are_those_of_hadoop(tmp_path: Path) -> None:
    # As Hadoop 3.5.0 prints them.
    assert oev("-p", "stats", "-i", _real(STORED), "-o", tmp_path / "stats").exit_code == 0
    lines = (tmp_path / "stats").read_text().splitlines()
    assert lines[0] == "    VERSION                             : -64"
    assert lines[1] == "    OP_ADD                         (  0): 10"
    assert lines[6] == "    OP_DATANODE_ADD                (  5): 0"
    assert lines[51] == "    OP_ENABLE_ERASURE_CODING_POLIC ( 50): 4"
    assert lines[-1] == "    OP_INVALID                     ( -1): 0"
    assert len(lines) == 55


@pytest.mark.parametrize(
    ("name", "data"),
    [("in", b""), ("in", b"HDFSIMG1"), ("in.xml", b"<EDITS>"), ("in.jsonl", b"{}")],
    ids=["empty", "an image", "XML", "JSON lines"],
)
def test_recovery_is_offered_only_where_it_helps(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    refused = oev("-p", "jsonl", "-i", tmp_path / name, "-o", tmp_path / "out")
    assert refused.exit_code == 255
    assert "--recover" not in refused.output


@pytest.mark.parametrize(
    ("command", "target", "code", "told"),
    [
        ("oev", "-", 255, "oev: standard output is closed\n"),
        ("oiv", "-", 255, "oiv: standard output is closed\n"),
        ("oev", "out", 0, ""),
    ],
)
def test_a_closed_standard_output_matters_only_where_it_is_written(
    tmp_path: Path, command: str, target: str, code: int, told: str
) -> None:
    source, out = tmp_path / "in", "-" if target == "-" else str(tmp_path / target)
    source.write_bytes(segment_bytes())
    words = [command, "-p", "XML", "-i", str(source), "-o", out]
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "ha.cli.main", *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (code, told)


def test_padding_and_damage_survive_json_lines(tmp_path: Path) -> None:
    data = bytearray(segment_bytes() + b"\xff" * 5000 + b"\x00" * 3)
    data[40] ^= 1
    (tmp_path / "in").write_bytes(data)
    refused = oev("-p", "jsonl", "-i", tmp_path / "in", "-o", tmp_path / "a.jsonl")
    assert refused.exit_code == 255
    assert "transaction 2: the checksum is wrong" in refused.output
    assert "--recover" in refused.output
    recovered = oev("-r", "-p", "jsonl", "-i", tmp_path / "in", "-o", tmp_path / "a.jsonl")
    assert recovered.exit_code == 0
    assert "transaction 2 lost" in recovered.output
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert lines[0] == {"layout": -65}
    assert lines[-1] == {"padding": [[255, 5000], [0, 3]]}
    assert "bytes" in lines[2]
    assert oev("-p", "binary", "-i", tmp_path / "a.jsonl", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").read_bytes() == data


def test_a_field_changed_in_json_lines_changes_the_bytes(tmp_path: Path) -> None:
    plain = segment_bytes([ops.AllowSnapshot("/old")])
    (tmp_path / "in").write_bytes(plain)
    assert oev("-p", "jsonl", "-i", tmp_path / "in", "-o", tmp_path / "a.jsonl").exit_code == 0
    first, line = (tmp_path / "a.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert "frame" not in record
    record |= {"frame": plain[8:].hex(), "snapshot_root": "/new"}
    (tmp_path / "a.jsonl").write_text(f"{first}\n{json.dumps(record)}\n")
    assert oev("-p", "binary", "-i", tmp_path / "a.jsonl", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").read_bytes() == segment_bytes([ops.AllowSnapshot("/new")])


def test_damage_leaves_a_whole_document_of_what_stands_before_it(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(segment_bytes()[:-5])
    assert oev("-i", tmp_path / "in", "-o", tmp_path / "a.xml").exit_code == 255
    assert oev("-p", "binary", "-i", tmp_path / "a.xml", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").read_bytes() == segment_bytes(SMALL[:-1])


def test_recovery_goes_on_behind_damage_and_numbers_can_be_closed_up(tmp_path: Path) -> None:
    data = bytearray(segment_bytes())
    data[8 + 17 + 30] ^= 4
    (tmp_path / "in").write_bytes(data)
    result = oev("-r", "-f", "-i", tmp_path / "in", "-o", tmp_path / "a.xml")
    assert result.exit_code == 0, result.output
    assert oev("-p", "binary", "-i", tmp_path / "a.xml", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").read_bytes() == segment_bytes([SMALL[0], *SMALL[2:]])


def test_the_form_of_the_input_is_told_by_ending_and_content(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(segment_bytes())
    for processor, name in (("xml", "a.XML"), ("xml", "plain"), ("jsonl", "lines")):
        assert oev("-p", processor, "-i", tmp_path / "in", "-o", tmp_path / name).exit_code == 0
        back = oev("-p", "binary", "-i", tmp_path / name, "-o", tmp_path / "back")
        assert back.exit_code == 0, back.output
        assert (tmp_path / "back").read_bytes() == segment_bytes()


def test_hadoops_spellings_work_and_verbose_shows_the_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(segment_bytes())
    out = tmp_path / "stats"
    result = oev("-v", "--inputFile", tmp_path / "in", "--outputFile", out, "--processor", "STATS")
    assert result.exit_code == 0
    assert result.output.startswith(f"input  [{tmp_path / 'in'}]\noutput [{out}]\n")
    assert result.output.endswith(out.read_text())


def test_xml_is_utf_8_whatever_it_declares(tmp_path: Path) -> None:
    """Read it as Hadoop does; found by fuzzing."""
    text = "<EDITS><EDITS_VERSION>-65</EDITS_VERSION></EDITS>"
    (tmp_path / "in.xml").write_text(f"<?xml version='1.0' encoding='x-none'?>{text}")
    result = oev("-p", "binary", "-i", tmp_path / "in.xml", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out").read_bytes() == segment_bytes([])


WRONG_XML = {
    "cut short": ("<EDITS><EDITS_VERSION>-65</EDITS_VERSION>", "line 1: this is no XML"),
    "another root": ("<CONFIG/>", "<CONFIG> stands where <EDITS> belongs"),
    "another layout": ("<EDITS><EDITS_VERSION>-68</EDITS_VERSION></EDITS>", "-68 is unknown"),
    "an unknown opcode": (
        "<EDITS><EDITS_VERSION>-65</EDITS_VERSION>\n<RECORD><OPCODE>OP_FLY</OPCODE>"
        "<DATA><TXID>1</TXID></DATA></RECORD></EDITS>",
        "line 2: opcode 'OP_FLY' is unknown",
    ),
    "a missing field": (
        "<EDITS><EDITS_VERSION>-65</EDITS_VERSION>\n<RECORD><OPCODE>OP_TIMES</OPCODE>"
        "<DATA><TXID>9</TXID></DATA></RECORD></EDITS>",
        "transaction 9: line 2: there is no <PATH>",
    ),
    "entities": (
        '<!DOCTYPE EDITS [<!ENTITY a "aaaa">]><EDITS>&a;</EDITS>',
        "a document type does not belong here",
    ),
}


@pytest.mark.parametrize("case", WRONG_XML)
def test_wrong_xml_is_refused_with_its_line(tmp_path: Path, case: str) -> None:
    text, reason = WRONG_XML[case]
    (tmp_path / "in.xml").write_text(text)
    result = oev("-p", "binary", "-i", tmp_path / "in.xml", "-o", tmp_path / "out")
    assert result.exit_code == 255
    assert str(tmp_path / "in.xml") in result.output
    assert reason in result.output


WRONG_LINES = {
    "nothing": ("", "the first line with the layout is missing"),
    "no layout": ('{"txid":1,"op":"OP_START_LOG_SEGMENT"}\n', "the first line"),
    "an unknown op": ('{"layout":-65}\n{"txid":1,"op":"OP_FLY"}\n', "line 2: op 'OP_FLY'"),
    "a field too many": (
        '{"layout":-65}\n{"txid":1,"op":"OP_START_LOG_SEGMENT","x":1}\n',
        "the field 'x' is unknown",
    ),
    "a number too large": (
        '{"layout":-65}\n{"txid":1,"op":"OP_SET_GENSTAMP_V2","generation_stamp":99999999999999999999}\n',
        "transaction 1: SetGenstampV2 cannot be written",
    ),
    "deep nesting": ('{"layout":-65}\n' + "[" * 100_000 + "\n", "line 2"),
}


@pytest.mark.parametrize("case", WRONG_LINES)
def test_wrong_json_lines_are_refused_with_their_line(tmp_path: Path, case: str) -> None:
    text, reason = WRONG_LINES[case]
    (tmp_path / "in.jsonl").write_text(text)
    result = oev("-p", "binary", "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out")
    assert result.exit_code == 255
    assert reason in result.output


def test_the_input_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(segment_bytes())
    assert oev("-i", tmp_path / "in", "-o", tmp_path / "in").exit_code == 2
    assert (tmp_path / "in").read_bytes() == segment_bytes()


@pytest.mark.parametrize("processor", ["xml", "jsonl", "stats"])
def test_a_big_log_takes_no_more_memory_than_a_small_one(tmp_path: Path, processor: str) -> None:
    """Measured in a process of its own, against less than the log is long."""
    path, limit = tmp_path / "big", 24 << 20
    chunk = b"".join(frames([ops.SetXAttr("/f", (_attribute(4000),))] * 1000))
    with path.open("wb") as file:
        file.write(segment_bytes([]))
        for _ in range(10):
            file.write(chunk)
    assert path.stat().st_size > 1.5 * limit
    code = (
        "import resource, sys, namenode_sim.oev.command as command, ha.cli.main\n"
        "used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"command.oev.main(['-i', {str(path)!r}, '-p', {processor!r}, '-o', '/dev/null'],"
        " standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < limit


def _attribute(size: int) -> XAttr:
    return XAttr(XAttrNamespace.USER, "a", bytes(size))
