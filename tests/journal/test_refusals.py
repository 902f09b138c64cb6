"""A node's no over Hadoop RPC, to our client and to Java."""

import base64
from typing import Final

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ILLEGAL_ARGUMENT, IO_EXCEPTION, STANDBY_EXCEPTION
from journal.errors import (
    AheadOfNode,
    BadRequest,
    CacheMiss,
    Fenced,
    InvariantBroken,
    JournalError,
    NotAdmitted,
    NotFormatted,
    OutOfSync,
    QuorumLost,
    StorageFailed,
    Unavailable,
    WrongNamespace,
)
from journal.model import Epoch, TxId
from journal.proto import journal_pb2 as pb
from journal.refusals import (
    ASSERTION,
    CACHE_MISS,
    MAX_MESSAGE_CHARS,
    NEWER_TXID,
    NOT_FORMATTED,
    OUT_OF_SYNC,
    REFUSAL,
    error_of_fault,
    java_fault,
    own_fault,
    refusal,
)

NOES: Final[list[tuple[JournalError, str]]] = [
    (NotFormatted("why"), NOT_FORMATTED),
    (WrongNamespace("why"), IO_EXCEPTION),
    (Fenced("why", promised=Epoch(7)), IO_EXCEPTION),
    (OutOfSync("why", expected_txid=TxId(4)), OUT_OF_SYNC),
    (OutOfSync("why", expected_txid=TxId(0)), OUT_OF_SYNC),
    (OutOfSync("why"), OUT_OF_SYNC),
    (NotAdmitted("why"), IO_EXCEPTION),
    (CacheMiss("why"), CACHE_MISS),
    (AheadOfNode("why"), NEWER_TXID),
    (BadRequest("why"), ILLEGAL_ARGUMENT),
    (StorageFailed("why"), IO_EXCEPTION),
    (InvariantBroken("why"), ASSERTION),
    (Unavailable("why"), IO_EXCEPTION),
]


@pytest.mark.parametrize(("said", "java_class"), NOES, ids=[type(no).__name__ for no, _ in NOES])
def test_a_no_is_heard_as_it_was_said(said: JournalError, java_class: str) -> None:
    heard = error_of_fault(own_fault(said))
    assert (type(heard), str(heard), vars(heard)) == (type(said), "why", vars(said))
    told = java_fault(said)
    assert (told.java_class, told.message) == (java_class, "why")


def test_a_no_of_no_kind_is_a_silence() -> None:
    said = QuorumLost("two are gone", failures={})
    assert refusal(said).kind == pb.Refusal.UNKNOWN
    heard = error_of_fault(own_fault(said))
    assert isinstance(heard, Unavailable)
    assert "two are gone" in str(heard)
    assert java_fault(said).java_class == IO_EXCEPTION


@pytest.mark.parametrize(("size", "left"), [(999, 999), (1000, 1000), (1001, 1000), (5000, 1000)])
def test_what_is_said_at_length_is_cut(size: int, left: int) -> None:
    said = NotAdmitted("x" * size)
    assert refusal(said).message == java_fault(said).message == "x" * left
    assert left <= MAX_MESSAGE_CHARS


SAID = refusal(Fenced("newer", promised=Epoch(7))).SerializeToString()


@pytest.mark.parametrize(
    ("java_class", "message", "part"),
    [
        (STANDBY_EXCEPTION, base64.b64encode(SAID).decode(), STANDBY_EXCEPTION),
        (STANDBY_EXCEPTION, "not here", "not here"),
        (REFUSAL, "abc", "cannot be read"),
        (REFUSAL, "\N{GREEK SMALL LETTER NU}s", "cannot be read"),
        (REFUSAL, base64.b64encode(b"\x08").decode(), "cannot be read"),
    ],
    ids=["another class", "other words", "half of base64", "no base64", "no refusal"],
)
def test_another_error_of_a_server_is_a_silence(java_class: str, message: str, part: str) -> None:
    heard = error_of_fault(RemoteFault(java_class, message))
    assert isinstance(heard, Unavailable)
    assert part in str(heard)
