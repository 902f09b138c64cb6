"""Numbers and decisions in small files: what is taken for one, and what is refused."""

from pathlib import Path

import pytest

from journal.core.state import Decision
from journal.errors import StorageFailed
from journal.model import NO_EPOCH, NO_TXID, Epoch, TxId
from journal.storage import small_files
from journal.storage.records import undelimited
from journal.storage.small_files import ensure_promise
from tests.journal.core.requests_of import segment

P = Path("x")
NUMBERS = {b"0\n": 0, b"7\n": 7, b" 12 \n": 12, b"12": 12, b"9" * 19: 10**19 - 1}


@pytest.mark.parametrize(("data", "number"), NUMBERS.items(), ids=list(map(repr, NUMBERS)))
def test_a_number_is_decimal(data: bytes, number: int) -> None:
    assert small_files.parse_epoch(P, data) == number
    assert small_files.parse_txid(P, data) == number


@pytest.mark.parametrize("data", [b"", b"\n", b"-1", b"1x", b"0x1", b"1 2", b"1" * 20, b"\xb2"])
def test_anything_else_is_no_number(data: bytes) -> None:
    for parse in (small_files.parse_epoch, small_files.parse_txid):
        with pytest.raises(StorageFailed, match="x is corrupt: it holds"):
            parse(P, data)


def test_without_a_file_there_is_no_number() -> None:
    assert small_files.parse_txid(P, None) == NO_TXID
    assert small_files.parse_epoch(P, None) == NO_EPOCH
    assert small_files.parse_txid(P, small_files.txid_text(TxId(77))) == 77


#   promised; last writer; epochs of decisions; whether the promise may be believed
PROMISES = {
    "a new node": (0, 0, (), True),
    "promised, never written": (3, 0, (), True),
    "written by whom it was promised": (3, 3, (), True),
    "decided by whom it was promised": (3, 2, (1, 3), True),
    "older than the writer": (2, 3, (), False),
    "older than the writer, not than a decision": (2, 3, (1,), False),
    "older than a decision": (2, 1, (3,), False),
    "older than one of the decisions": (2, 2, (1, 3, 2), False),
    "none, and somebody wrote": (0, 1, (), False),
    "none, and somebody decided": (0, 0, (1,), False),
}


@pytest.mark.parametrize(
    ("promised", "writer", "decided", "believed"), PROMISES.values(), ids=list(PROMISES)
)
def test_a_promise_is_as_new_as_all_that_was_done_under_it(
    promised: int, writer: int, decided: tuple[int, ...], *, believed: bool
) -> None:
    decisions = {
        TxId(first): Decision(segment(first, first), Epoch(epoch))
        for first, epoch in enumerate(decided, 1)
    }
    if believed:
        ensure_promise(P, Epoch(promised), Epoch(writer), decisions)
        return
    newest = max([writer, *decided])
    with pytest.raises(StorageFailed, match=f"promises {promised}, while epoch {newest} wrote"):
        ensure_promise(P, Epoch(promised), Epoch(writer), decisions)


def test_a_decision_that_has_swallowed_its_checksum_is_corrupt() -> None:
    """Refuse a wrong length, though what is too much reads as an unknown field."""
    data = small_files.decision_bytes(Decision(segment(5, 9, finalized=True), Epoch(3)))
    record, end = undelimited(P, data)
    line = data[end:]
    longer = record + bytes([15 << 3 | 2, len(line)]) + line
    with pytest.raises(StorageFailed, match="checksum is wrong"):
        small_files.parse_decision(P, TxId(5), bytes([len(longer)]) + longer)
