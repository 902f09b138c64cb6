"""The record next to the breadcrumb is of the write that our NameNode is active under, or none."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from ha.elector.model import SessionNumber, Term
from ha.elector.term import TermRecord, decode_term, encode_term
from ha.elector.term_keeper import TermKeeper
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import AclEntry, parse_acl
from ha.elector.zookeeper.outcome import Done, Doubt, Outcome, Refusal, Refused, Unknown, ZnodeFacts
from ha.elector.zookeeper.settings import ZooKeeperSettings

S = SessionNumber(3)
SETTINGS = ZooKeeperSettings(
    hosts="zk:1", session_timeout_seconds=6.0, scope="/hadoop-ha/ns1",
    acl=parse_acl("world:anyone:rwcda"),
)  # fmt: skip


class Znodes:
    """Persistent znodes in memory, as one session writes and reads them."""

    def __init__(self) -> None:
        self.there: dict[str, tuple[bytes, int]] = {}
        self.transaction = 100
        self.told_of_acls: Outcome[tuple[frozenset[AclEntry], int]] = Unknown(Doubt.LATE)

    def put(self, path: str, data: bytes) -> int:
        self.transaction += 1
        self.there[path] = data, self.transaction
        return self.transaction

    async def read(self, path: str) -> Outcome[tuple[bytes, ZnodeFacts]]:
        if path not in self.there:
            return Refused(Refusal.NO_NODE, path)
        data, written_by = self.there[path]
        return Done((data, ZnodeFacts(0, ours=False, written_by=written_by)))

    def write(self, path: str, data: bytes, *, version: int) -> "asyncio.Future[Outcome[int]]":
        assert version == -1
        outcome: asyncio.Future[Outcome[int]] = asyncio.get_running_loop().create_future()
        if path in self.there:
            self.put(path, data)
            outcome.set_result(Done(0))
        else:
            outcome.set_result(Refused(Refusal.NO_NODE, path))
        return outcome

    async def create(self, path: str, data: bytes = b"") -> Outcome[None]:
        if path in self.there:
            return Refused(Refusal.NODE_EXISTS, path)
        self.put(path, data)
        return Done(None)

    async def acl(self, path: str) -> Outcome[tuple[frozenset[AclEntry], int]]:
        return self.told_of_acls

    def recorded(self) -> bytes | None:
        found = self.there.get(SETTINGS.term)
        return None if found is None else found[0]


async def settle(keeper: TermKeeper, znodes: Znodes, content: bytes) -> None:
    before = asyncio.all_tasks()
    keeper.record_settled(S, cast(Session, znodes), content)
    await asyncio.gather(*(asyncio.all_tasks() - before))


@pytest.mark.parametrize("there_already", [False, True])
async def test_the_record_is_bound_to_the_write_of_the_breadcrumb(there_already: bool) -> None:
    znodes, keeper = Znodes(), TermKeeper(SETTINGS)
    if there_already:
        znodes.put(SETTINGS.term, encode_term(TermRecord(7, Term.ENDED)))
    written = znodes.put(SETTINGS.breadcrumb, b"nn1")
    await settle(keeper, znodes, b"nn1")
    assert decode_term(written, znodes.recorded()) is Term.SETTLED
    assert decode_term(written + 1, znodes.recorded()) is Term.UNKNOWN
    keeper.record_ended(S, cast(Session, znodes), "nn1 has ended")
    assert decode_term(written, znodes.recorded()) is Term.ENDED


@pytest.mark.parametrize("found", [b"nn2", None], ids=["another's", "gone"])
async def test_a_breadcrumb_that_changed_between_promotion_and_settling_is_not_ours(
    found: bytes | None,
) -> None:
    """Play the bad schedule: ours expired during our NameNode's promotion, and we were fenced.

    A record of that one's term, written by us, would say that our end is the end of its NameNode.
    """
    znodes, keeper = Znodes(), TermKeeper(SETTINGS)
    before = encode_term(TermRecord(7, Term.ENDED))
    znodes.put(SETTINGS.term, before)
    if found is not None:
        znodes.put(SETTINGS.breadcrumb, found)
    await settle(keeper, znodes, b"nn1")
    assert znodes.recorded() == before
    keeper.record_ended(S, cast(Session, znodes), "nn1 has ended")
    assert znodes.recorded() == before


async def test_the_end_in_another_session_records_nothing() -> None:
    znodes, keeper = Znodes(), TermKeeper(SETTINGS)
    written = znodes.put(SETTINGS.breadcrumb, b"nn1")
    await settle(keeper, znodes, b"nn1")
    keeper.record_ended(SessionNumber(S + 1), cast(Session, znodes), "nn1 has ended")
    assert decode_term(written, znodes.recorded()) is Term.SETTLED


@pytest.mark.parametrize(
    ("told", "term"),
    [
        (Done((frozenset(parse_acl("sasl:nn:rwcda")), 0)), Term.ENDED),
        (Unknown(Doubt.LATE), Term.DOUBTED),
        (Refused(Refusal.OTHER, "broken"), Term.DOUBTED),
    ],
    ids=["ours", "no answer", "refused"],
)
async def test_who_could_have_written_a_breadcrumb_must_be_known_to_believe_it(
    told: Outcome[tuple[frozenset[AclEntry], int]], term: Term
) -> None:
    znodes = Znodes()
    znodes.told_of_acls = told
    written = znodes.put(SETTINGS.breadcrumb, b"nn2")
    znodes.put(SETTINGS.term, encode_term(TermRecord(written, Term.ENDED, "told")))
    closed = replace(SETTINGS, acl=parse_acl("sasl:nn:rwcda"))
    _, found = await TermKeeper(closed).read(cast(Session, znodes))
    assert found is term


@pytest.mark.parametrize(
    ("data", "term"),
    [
        (None, Term.UNKNOWN),
        (b"", Term.UNKNOWN),
        (b"[]", Term.UNKNOWN),
        (b"{}", Term.UNKNOWN),
        (b"[" * 100_000, Term.UNKNOWN),
        (encode_term(TermRecord(5, Term.SETTLED)), Term.SETTLED),
        (encode_term(TermRecord(5, Term.ENDED, "told")), Term.ENDED),
        (encode_term(TermRecord(5, Term.DOUBTED)), Term.UNKNOWN),
        (encode_term(TermRecord(4, Term.ENDED)), Term.UNKNOWN),
        (encode_term(TermRecord(6, Term.ENDED)), Term.UNKNOWN),
        (b'{"breadcrumb": 5, "term": "never"}', Term.UNKNOWN),
    ],
)
def test_a_record_speaks_of_its_breadcrumb_alone(data: Any, term: Term) -> None:  # noqa: ANN401
    assert decode_term(5, data) is term
