"""A node's no over Hadoop RPC, to our client and to Java."""

import base64
from typing import Final

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ILLEGAL_ARGUMENT, IO_EXCEPTION, STANDBY_EXCEPTION
from journal import errors, refusals
from journal.errors import StorageFailed
from journal.model import Epoch, TxId
from journal.proto import journal_pb2 as pb
from journal.refusals import refusal

NOES: Final[list[tuple[errors.JournalError, str]]] = [
    (errors.NotFormatted("why"), refusals.NOT_FORMATTED),
    (errors.WrongNamespace("why"), IO_EXCEPTION),
    (errors.Fenced("why", promised=Epoch(7)), IO_EXCEPTION),
    (errors.OutOfSync("why", expected_txid=TxId(4)), refusals.OUT_OF_SYNC),
    (errors.OutOfSync("why", expected_txid=TxId(0)), refusals.OUT_OF_SYNC),
    (errors.OutOfSync("why"), refusals.OUT_OF_SYNC),
    (errors.NotAdmitted("why"), IO_EXCEPTION),
    (errors.CacheMiss("why"), refusals.CACHE_MISS),
    (errors.AheadOfNode("why"), refusals.NEWER_TXID),
    (errors.BadRequest("why"), ILLEGAL_ARGUMENT),
    (StorageFailed("why"), IO_EXCEPTION),
    (errors.InvariantBroken("why"), refusals.ASSERTION),
    (errors.Unavailable("why"), IO_EXCEPTION),
]


@pytest.mark.parametrize(("said", "java_class"), NOES, ids=[type(no).__name__ for no, _ in NOES])
def test_a_no_is_heard_as_it_was_said(said: errors.JournalError, java_class: str) -> None:
    heard = refusals.error_of_fault(refusals.own_fault(said))
    assert (type(heard), str(heard), vars(heard)) == (type(said), "why", vars(said))
    told = refusals.java_fault(said)
    assert (told.java_class, told.message) == (java_class, "why")


def test_a_no_of_no_kind_is_a_silence() -> None:
    said = errors.QuorumLost("two are gone", failures={})
    assert refusal(said).kind == pb.Refusal.UNKNOWN
    heard = refusals.error_of_fault(refusals.own_fault(said))
    assert isinstance(heard, errors.Unavailable)
    assert "two are gone" in str(heard)
    assert refusals.java_fault(said).java_class == IO_EXCEPTION


@pytest.mark.parametrize(("size", "left"), [(999, 999), (1000, 1000), (1001, 1000), (5000, 1000)])
def test_what_is_said_at_length_is_cut(size: int, left: int) -> None:
    said = errors.NotAdmitted("x" * size)
    assert refusal(said).message == refusals.java_fault(said).message == "x" * left
    assert left <= refusals.MAX_MESSAGE_CHARS


SAID = refusal(errors.Fenced("newer", promised=Epoch(7))).SerializeToString()


@pytest.mark.parametrize(
    ("java_class", "message", "part"),
    [
        (STANDBY_EXCEPTION, base64.b64encode(SAID).decode(), STANDBY_EXCEPTION),
        (STANDBY_EXCEPTION, "not here", "not here"),
        (refusals.REFUSAL, "abc", "cannot be read"),
        (refusals.REFUSAL, "\N{GREEK SMALL LETTER NU}s", "cannot be read"),
        (refusals.REFUSAL, base64.b64encode(b"\x08").decode(), "cannot be read"),
    ],
    ids=["another class", "other words", "half of base64", "no base64", "no refusal"],
)
def test_another_error_of_a_server_is_a_silence(java_class: str, message: str, part: str) -> None:
    heard = refusals.error_of_fault(RemoteFault(java_class, message))
    assert isinstance(heard, errors.Unavailable)
    assert part in str(heard)
