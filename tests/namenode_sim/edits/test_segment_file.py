"""Segment files read offline: order, padding, torn tails, damage and what is found behind it."""

import tracemalloc
from pathlib import Path

import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.recovery import SegmentReport, Skipped, salvage, scan_segment
from namenode_sim.edits.segment_file import open_segment, read_segment
from namenode_sim.edits.values import XAttr, XAttrNamespace
from namenode_sim.edits.window import CHUNK_BYTES
from tests import TESTDATA
from tests.namenode_sim.edits.framed_bytes import sealed
from tests.namenode_sim.edits.segments import SMALL, frames, segment_bytes
from tests.needs import FILES_OF_HADOOP

LAYOUTS = (-47, -50, -55, -56, -60, -65, -67)
LAST = len(SMALL)


def _write(folder: Path, data: bytes, name: str = "edits_inprogress_0000000000000000001") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_segment_of_any_layout_reads_back(tmp_path: Path, layout: int) -> None:
    path = _write(tmp_path, segment_bytes(layout=layout) + b"\xff" * 100)
    assert list(read_segment(path)) == list(enumerate(SMALL, start=1))
    assert scan_segment(path) == SegmentReport(TxId(LAST), LAST, ())


@pytest.mark.parametrize("name", ["edits_0000000000000000001-0000000000000000026",
                                  "edits_inprogress_0000000000000000027"])  # fmt: skip
def test_hadoops_own_files_are_sound(name: str) -> None:
    path = TESTDATA / "name-dir" / name
    if not path.exists():
        FILES_OF_HADOOP.skip(f"{path} is not there")
    report = scan_segment(path)
    assert (report.count, report.skipped) == (len(list(read_segment(path))), ())


@pytest.mark.parametrize("op_bytes", [40, 1 << 16, 3 << 20])
def test_ops_of_any_size_cross_the_edges_of_the_window(tmp_path: Path, op_bytes: int) -> None:
    value = XAttr(XAttrNamespace.USER, "a", b"some bytes" * (op_bytes // 10))
    written = [ops.SetXAttr("/f", (value,))] * max(3, 2 * CHUNK_BYTES // op_bytes)
    for layout in (-65, -55):
        path = _write(tmp_path, segment_bytes(written, layout=layout))
        assert [op for _, op in read_segment(path)] == written
        report = scan_segment(_write(tmp_path, path.read_bytes()[:-3]))
        assert report.count == len(written) - 1
        assert report.skipped[0].before is None


@pytest.mark.parametrize("before_edge", range(7))
def test_a_frame_may_begin_just_before_the_edge_of_the_window(
    tmp_path: Path, before_edge: int
) -> None:
    def filled(count: int) -> ops.Op:
        return ops.SetXAttr("/f", (XAttr(XAttrNamespace.USER, "a", b"x" * count),))

    wanted, guess = CHUNK_BYTES - before_edge, CHUNK_BYTES - 1000
    fitting = filled(guess + wanted - len(segment_bytes([filled(guess)])))
    assert len(segment_bytes([fitting])) == wanted
    written = [fitting, *SMALL]
    assert [op for _, op in read_segment(_write(tmp_path, segment_bytes(written)))] == written


def test_a_big_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "big"
    chunk = b"".join(frames([ops.Mkdir(1, "/" + "x" * 200, 1, 1, SMALL[1].permission)] * 1000))  # type: ignore[union-attr]
    with path.open("wb") as file:
        file.write(segment_bytes([]))
        for _ in range(40):
            file.write(chunk)
    assert path.stat().st_size > 9 * CHUNK_BYTES
    tracemalloc.start()
    try:
        with open_segment(path) as segment:
            count = sum(1 for _ in segment.ops(numbered=False))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 40_000
    assert peak < 4 * CHUNK_BYTES


def test_a_name_promises_its_transactions(tmp_path: Path) -> None:
    data = segment_bytes()
    with pytest.raises(EditsError, match="transaction 1 stands where 2 belongs"):
        list(read_segment(_write(tmp_path, data, "edits_inprogress_2")))
    short = _write(tmp_path, data, f"edits_1-{LAST + 2}")
    with pytest.raises(EditsError, match=f"promises them up to {LAST + 2}") as refusal:
        list(read_segment(short))
    assert (refusal.value.offset, refusal.value.txid) == (len(data), LAST + 1)
    assert len(list(read_segment(_write(tmp_path, data, "editsStored")))) == LAST
    # What follows the last promised op means nothing.
    behind = _write(tmp_path, data + b"anything", f"edits_1-{LAST}")
    assert len(list(read_segment(behind))) == LAST


HEADERS = {
    "empty": (b"", "inside its header", 0),
    "cut": (segment_bytes()[:5], "inside its header", 0),
    "preallocated": (b"\xff" * 100, "never written", 0),
    "newer": (segment_bytes(layout=-65).replace(b"\xbf", b"\xbc", 1), "version -68 is unknown", 0),
    "ancient": (b"\xff\xff\xff\xf0" + bytes(20), "version -16 is unknown", 0),
    "flags": (segment_bytes()[:7] + b"\x01", "1 layout flags", 4),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_bad_header_is_named_with_its_place(tmp_path: Path, case: str) -> None:
    data, reason, offset = HEADERS[case]
    path = _write(tmp_path, data)
    with pytest.raises(EditsError, match=reason) as refusal:
        list(read_segment(path))
    assert (refusal.value.file, refusal.value.offset) == (str(path), offset)


def test_an_unknown_opcode_is_named_with_file_offset_and_transaction(tmp_path: Path) -> None:
    good, (bad,) = frames(SMALL[:3]), frames(SMALL[4:5], first=4)
    damaged = bytearray(bad[:-4])
    damaged[0] = 60
    path = _write(tmp_path, segment_bytes([]) + b"".join(good) + sealed(bytes(damaged)))
    with pytest.raises(EditsError) as refusal:
        list(read_segment(path))
    offset = 8 + sum(map(len, good))
    assert str(refusal.value) == f"{path}, offset {offset}, transaction 4: opcode 60 is unknown"


def test_a_length_that_the_file_cannot_hold_is_not_believed(tmp_path: Path) -> None:
    frame = bytearray(frames(SMALL[:1])[0])
    frame[1:5] = (50 << 20).to_bytes(4, "big")
    path = _write(tmp_path, segment_bytes([]) + bytes(frame))
    tracemalloc.start()
    try:
        with pytest.raises(EditsError, match="claims 52428800 bytes"):
            list(read_segment(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * CHUNK_BYTES


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_torn_tail_is_told_from_padding(tmp_path: Path, layout: int) -> None:
    whole = segment_bytes(layout=layout)
    last = len(frames(SMALL[-1:], layout=layout)[0])
    for cut in range(1, last):
        for tail in (b"", b"\xff" * 50):
            report = scan_segment(_write(tmp_path, whole[:-cut] + tail))
            (skipped,) = report.skipped
            assert (report.last, skipped.after, skipped.before) == (LAST - 1, LAST - 1, None), cut
            assert skipped.offset == len(whole) - last


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bad", range(len(SMALL)))
def test_resync_finds_what_stands_behind_a_bad_op(tmp_path: Path, layout: int, bad: int) -> None:
    written = frames(SMALL, layout=layout)
    offset = len(segment_bytes([], layout=layout)) + sum(map(len, written[:bad]))
    data = bytearray(segment_bytes(layout=layout) + b"\xff" * 30)
    data[offset + len(written[bad]) - 1] ^= 0x10
    path = _write(tmp_path, bytes(data))
    found = list(salvage(path))
    kept = [(txid, op) for txid, op in enumerate(SMALL, start=1) if txid != bad + 1]
    assert [item for item in found if not isinstance(item, Skipped)] == kept
    (skipped,) = [item for item in found if isinstance(item, Skipped)]
    assert (skipped.offset, skipped.length) == (offset, len(written[bad]))
    assert skipped.after == bad
    assert skipped.before == (bad + 2 if bad < len(SMALL) - 1 else None)
    assert scan_segment(path).count == len(SMALL) - 1


def test_missing_ops_between_sound_ones_are_counted(tmp_path: Path) -> None:
    data = segment_bytes([]) + frames(SMALL[:1])[0] + b"".join(frames(SMALL[3:], first=900_000))
    path = _write(tmp_path, data)
    with pytest.raises(EditsError, match="transaction 900000 stands where 2 belongs"):
        list(read_segment(path))
    report = scan_segment(path)
    assert report.count == 1 + len(SMALL[3:])
    (skipped,) = report.skipped
    assert skipped.length == 0
    assert "transactions 2 to 899999 lost" in str(skipped)


def test_an_op_repeated_with_an_old_number_is_skipped(tmp_path: Path) -> None:
    again = frames(SMALL[1:2], first=2)[0]
    data = segment_bytes(SMALL[:3]) + again + b"".join(frames(SMALL[3:], first=4))
    report = scan_segment(_write(tmp_path, data))
    assert report.count == len(SMALL)
    (skipped,) = report.skipped
    assert (skipped.length, skipped.after, skipped.before) == (len(again), 3, 4)


def test_a_file_made_to_look_like_frames_everywhere_ends_soon(tmp_path: Path) -> None:
    # Each ninth byte begins what could be a frame of up to 50 MiB; none has a right checksum.
    report = scan_segment(_write(tmp_path, segment_bytes(SMALL[:2]) + bytes(400_000)))
    (skipped,) = report.skipped
    assert (report.count, skipped.before) == (2, None)
