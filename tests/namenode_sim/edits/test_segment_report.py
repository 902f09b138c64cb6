"""The report on a damaged segment: what each damage cost, and what the file's name promised."""

from pathlib import Path

import pytest

from journal.model import TxId
from namenode_sim.edits.recovery import SegmentReport, Skipped, scan_segment
from tests.namenode_sim.edits.segments import SMALL, frames, segment_bytes

LAST = len(SMALL)

#   after, before: the sound transactions around the damage
LOSSES = {
    "no sound op": (None, None, "all edits behind it lost"),
    "none behind": (7, None, "everything behind transaction 7 lost"),
    "nothing tells what came before": (None, 9, "an unknown number of transactions lost"),
    "none between": (7, 8, "no transaction lost"),
    "one between": (7, 9, "transaction 8 lost"),
    "some between": (7, 12, "transactions 8 to 11 lost"),
    "an older one behind": (7, 3, "no transaction lost"),
}


@pytest.mark.parametrize(("after", "before", "loss"), LOSSES.values(), ids=LOSSES)
def test_the_operator_is_told_what_the_damage_cost(
    after: TxId | None, before: TxId | None, loss: str
) -> None:
    skipped = Skipped(100, 20, "the checksum is wrong", after, before)
    assert str(skipped) == f"offset 100: 20 bytes skipped, {loss}: the checksum is wrong"


def _write(folder: Path, data: bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _damaged(*bad: int) -> bytes:
    """SMALL with a wrong checksum in each of these transactions, and padding."""
    written = [bytearray(frame) for frame in frames(SMALL)]
    for txid in bad:
        written[txid - 1][-1] ^= 0x10
    return segment_bytes([]) + b"".join(written) + b"\xff" * 9


NAMES = {
    "of no segment": "editsStored",
    "in progress": "edits_inprogress_1",
    "finalized": f"edits_1-{LAST}",
    "that ends before the file": f"edits_1-{LAST - 1}",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_whole_file_is_sound_by_a_name(tmp_path: Path, name: str) -> None:
    assert scan_segment(_write(tmp_path, _damaged(), name)) == SegmentReport(TxId(LAST), LAST, ())


def test_a_file_that_ends_early_lacks_what_its_name_promises(tmp_path: Path) -> None:
    data = segment_bytes()
    (skipped,) = scan_segment(_write(tmp_path, data, f"edits_1-{LAST + 2}")).skipped
    assert (skipped.offset, skipped.length) == (len(data), 0)
    assert f"transactions {LAST + 1} to {LAST + 2} lost" in str(skipped)


def test_a_file_without_ops_lacks_all_that_its_name_promises(tmp_path: Path) -> None:
    report = scan_segment(_write(tmp_path, segment_bytes([]), "edits_5-8"))
    assert (report.last, report.count) == (None, 0)
    (skipped,) = report.skipped
    assert (skipped.offset, skipped.length) == (len(segment_bytes([])), 0)
    assert "transactions 5 to 8 lost" in str(skipped)


def test_an_end_that_is_damaged_is_told_once(tmp_path: Path) -> None:
    (skipped,) = scan_segment(_write(tmp_path, _damaged(LAST), f"edits_1-{LAST}")).skipped
    assert (skipped.what, skipped.length) == ("the checksum is wrong", len(frames(SMALL)[-1]))


def test_a_scan_tells_of_each_damage_and_looks_behind_it(tmp_path: Path) -> None:
    report = scan_segment(_write(tmp_path, _damaged(2, 4, 6), "edits_inprogress_1"))
    assert (report.last, report.count) == (5, 3)
    around = [(skipped.after, skipped.before) for skipped in report.skipped]
    assert around == [(1, 3), (3, 5), (5, None)]
