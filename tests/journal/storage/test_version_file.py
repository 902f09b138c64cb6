"""The text of VERSION: what is written, and what is read from it.

Numbers and decisions in small files: what is taken for one, and what is refused.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from journal.core.state import Decision
from journal.errors import StorageFailed
from journal.model import NO_EPOCH, NO_TXID, Epoch, NamespaceInfo, TxId
from journal.storage import small_files
from journal.storage.records import undelimited
from journal.storage.small_files import ensure_promise, parse_version, version_text
from tests.journal.core.requests_of import segment

P = Path("x")
NAMESPACE = NamespaceInfo(-65, 1891, "CID-8a", 7)


def text_with(cluster_id: str, more: str = "") -> bytes:
    return (
        f"#written by nnha\nnamespaceID=1891\nclusterID={cluster_id}\ncTime=7\n"
        f"storageType=JOURNAL_NODE\n{more}layoutVersion=-65\n"
    ).encode("latin-1")


def test_a_block_pool_has_a_line_where_it_is_known() -> None:
    assert version_text(NAMESPACE) == text_with("CID-8a")
    pool = replace(NAMESPACE, block_pool_id="BP:1")
    assert version_text(pool) == text_with("CID-8a", "blockpoolID=BP\\:1\n")
    assert parse_version(P, version_text(NAMESPACE)) == NAMESPACE
    assert parse_version(P, version_text(pool)) == pool


#   a cluster id, and what stands for it in the file
WRITTEN = {
    "CID-8a": "CID-8a",
    "a b~": "a b~",
    "a\\:=#!": "a\\\\\\:\\=\\#\\!",
    "a\x1fb": "a\\u001Fb",
    "a\x7fb": "a\\u007Fb",
    "a\tb": "a\\u0009b",
    "\u00e9": "\\u00E9",
    "\u4e2d": "\\u4E2D",
    "\U0001f600": "\\uD83D\\uDE00",
}


@pytest.mark.parametrize(("value", "text"), WRITTEN.items(), ids=list(map(ascii, WRITTEN)))
def test_what_java_would_misread_is_escaped(value: str, text: str) -> None:
    named = replace(NAMESPACE, cluster_id=value)
    assert version_text(named) == text_with(text)
    assert parse_version(P, text_with(text)) == named


#   what stands in a file of another, and the cluster id that it means
READ = {
    "a\\u0042c": "aBc",
    "a\\u0042": "aB",
    "\\u0041\\u0042": "AB",
    "\\u00e9": "\u00e9",
    "\\u004": "u004",
    "a\\nb": "a\nb",
    "a\\tb": "a\tb",
    "a\\rb": "a\rb",
    "a\\fb": "a\fb",
    "\\a\\:": "a:",
    "a\\\\": "a\\",
    "a\\": "a\\",
    "a=b": "a=b",
    " a b ": "a b",
    "\\uD83D": "\ufffd",
}


@pytest.mark.parametrize(("text", "value"), READ.items(), ids=list(map(ascii, READ)))
def test_escapes_read_as_java_reads_them(text: str, value: str) -> None:
    assert parse_version(P, text_with(text)).cluster_id == value


ODD = {
    "blanks around": b" namespaceID = 1891 \nclusterID\t=\tCID-8a\ncTime =7\nlayoutVersion= -65",
    "empty lines": b"\n\n" + text_with("CID-8a").replace(b"\n", b"\r\n\r\n"),
    "comments": b"#cTime=9\n!cTime=9\n # a=\\uNONE\n!a=\\uNONE\n" + text_with("CID-8a"),
    "a line of another": b"anything\n" + text_with("CID-8a", "other=5\n"),
}


@pytest.mark.parametrize("data", ODD.values(), ids=list(ODD))
def test_what_else_a_file_of_properties_may_have(data: bytes) -> None:
    assert parse_version(P, data) == NAMESPACE


CORRUPT = {
    "no cluster id": (text_with("a").replace(b"clusterID", b"cluster"), "lacks clusterID"),
    "no time": (text_with("a").replace(b"cTime", b"time"), "lacks cTime"),
    "no namespace": (text_with("a").replace(b"namespaceID", b"id"), "lacks namespaceID"),
    "no layout": (text_with("a").replace(b"layoutVersion", b"layout"), "lacks layoutVersion"),
    "a time that is no number": (text_with("a").replace(b"=7", b"=x"), "is corrupt"),
    "an escape that is no number": (text_with("\\uNONE"), "is corrupt"),
    "an escape in another line": (text_with("a", "b=\\uNONE\n"), "is corrupt"),
}


@pytest.mark.parametrize(("data", "says"), CORRUPT.values(), ids=list(CORRUPT))
def test_a_version_that_cannot_be_read_is_refused_by_its_name(data: bytes, says: str) -> None:
    with pytest.raises(StorageFailed, match=f"^x .*{says}|^x {says}"):
        parse_version(P, data)


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
