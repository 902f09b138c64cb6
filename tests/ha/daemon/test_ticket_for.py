"""What a client makes of a server that asks for a ticket: each end of getting and checking one."""

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from ha.daemon.http import negotiate
from ha.daemon.http.negotiate import ASKED_BY, NotProven, Ticket, prove_ourselves, ticket_for
from ha.security.sasl.mechanism import SaslFailure

ASKED = ["Negotiate"]


class Initiator:
    """Ours for one server, as far as a ticket uses it."""

    def __init__(self, token: Callable[[], bytes] = lambda: b"ours") -> None:
        self.token = token
        self.failure: Exception | None = None
        self.finished: list[bytes] = []

    def finish(self, token: bytes) -> None:
        self.finished.append(token)
        if self.failure is not None:
            raise self.failure


class Own:
    """Kerberos as a process has it."""

    def __init__(self, initiator: Initiator, *, web: bool = True) -> None:
        self.initiator = initiator
        self.web = web

    def web_initiator(self, host: str) -> Initiator:
        assert host == "there"
        return self.initiator


def acting(monkeypatch: pytest.MonkeyPatch, own: Own | None) -> None:
    monkeypatch.setattr("ha.security.kerberos.own.own_kerberos", lambda: own)


def failing(error: Exception) -> Callable[[], bytes]:
    def token() -> bytes:
        raise error

    return token


async def test_a_ticket_is_made_where_one_is_asked_for_and_we_have_kerberos(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for own in (None, Own(Initiator(), web=False)):
        acting(monkeypatch, own)
        assert await ticket_for("there", 401, ASKED) is None
    acting(monkeypatch, Own(Initiator()))
    assert await ticket_for("there", 200, ASKED) is None
    assert await ticket_for("there", 401, ["Basic"]) is None
    ticket = await ticket_for("there", 401, ASKED)
    assert ticket is not None
    assert ticket.headers == {"Authorization": "Negotiate b3Vycw=="}


async def test_why_there_is_no_ticket_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, Own(Initiator(failing(SaslFailure("no credentials")))))
    with pytest.raises(NotProven, match="it asks for a ticket: no credentials"):
        await ticket_for("there", 401, ASKED)
    acting(monkeypatch, Own(Initiator(failing(KeyError("a fault of ours")))))
    with pytest.raises(KeyError):
        await ticket_for("there", 401, ASKED)


async def test_a_kdc_that_is_silent_keeps_no_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def wait() -> bytes:
        answered.wait(30)
        return b""

    monkeypatch.setattr(negotiate, "TICKET_SECONDS", 0.05)
    acting(monkeypatch, Own(Initiator(wait)))
    try:
        with pytest.raises(NotProven, match=r"no ticket for there came in 0\.05 s"):
            await ticket_for("there", 401, ASKED)
    finally:
        answered.set()


def test_a_server_that_lets_us_in_has_to_prove_itself() -> None:
    initiator = Initiator()
    ticket = Ticket(cast(Any, initiator), b"ours")
    ticket.check(200, ["Negotiate dGhlaXJz"])
    ticket.check(200, [])
    assert initiator.finished == [b"theirs", b""]
    initiator.failure = SaslFailure("not this one")
    with pytest.raises(NotProven, match="the server does not prove itself: not this one"):
        ticket.check(200, ["Negotiate dGhlaXJz"])
    for refused in (401, 403):
        ticket.check(refused, [])
    initiator.failure = KeyError("a fault of ours")
    with pytest.raises(KeyError):
        ticket.check(200, [])


class Response:
    """One answer, as far as the middleware of aiohttp's clients uses it."""

    def __init__(self, status: int, *challenges: str) -> None:
        self.status = status
        self.headers = self
        self._challenges = challenges
        self.released = False

    def getall(self, name: str, _default: object) -> list[str]:
        assert name == ASKED_BY
        return list(self._challenges)

    def release(self) -> None:
        self.released = True


class Request:
    """One question."""

    class url:
        host = "there"

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}


async def test_a_question_is_asked_once_more_and_the_first_answer_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    initiator = Initiator()
    acting(monkeypatch, Own(initiator))
    first, second = Response(401, "Negotiate"), Response(200, "Negotiate dGhlaXJz")
    answers, shown = [first, second], list[dict[str, str]]()

    async def ask(request: Request) -> Response:
        shown.append(dict(request.headers))
        return answers.pop(0)

    asked = await prove_ourselves(cast(Any, Request()), cast(Any, ask))
    assert cast(object, asked) is second
    assert (first.released, second.released) == (True, False)
    assert shown == [{}, {"Authorization": "Negotiate b3Vycw=="}]
    assert initiator.finished == [b"theirs"]
    answers = [Response(200)]
    only = answers[0]
    assert cast(object, await prove_ourselves(cast(Any, Request()), cast(Any, ask))) is only
    assert not only.released
