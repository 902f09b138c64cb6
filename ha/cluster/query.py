"""One look at a cluster: a common deadline, and why a process did not answer in a few words."""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TypeVar, cast

from ha.cluster.agreement import CLOCK_FIELD, ahead
from ha.cluster.connections import ONE_EACH, Connections
from ha.cluster.unreachable import ANSWERS_WITH_AN_ERROR, NO_ANSWER, NOT_RUNNING
from ha.conf.topology import HostPort
from ha.daemon.http.http_get import http_get
from ha.daemon.own_delay import OwnDelay
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.names import waited_for
from ha.notices.codec import MAX_ENTRY_CHARACTERS
from ha.security.audit_text import escape
from ha.service.errors import ServiceRefused, ServiceUnreachable

MAX_ANSWER_BYTES = 1024 * 1024
HTTP_NOT_FOUND = "HTTP 404"
MOST_DELAY_SECONDS = 30.0
"""The most seconds by which standstills of our own loop may extend the limit of a look."""
BEAT_SECONDS = 0.05
"""How finely our own standstill is measured."""
HANG_UP_SECONDS = 1.0
"""For a question that was given up to close its connection."""
_SOON = 0.01

R = TypeVar("R")


class NoAnswer(Exception):
    """Why a process did not answer, in a few words for its row."""


class Look:
    """One look at the cluster: its deadline, and its questions, whose failures are put into words.

    The limit counts from the first question, when everything is loaded.  While our own loop stands
    still it can read no answer, so that time is added, up to ``MOST_DELAY_SECONDS``.
    """

    def __init__(self, seconds: float, connections: Connections = ONE_EACH) -> None:
        self.connections = connections
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._delay = OwnDelay(BEAT_SECONDS)
        self._delay.begin()
        self.seconds = seconds

    @property
    def deadline(self) -> float:
        """When it must be over, on the loop's clock."""
        return self._began + self.seconds + min(self._delay.seconds, MOST_DELAY_SECONDS)

    @property
    def own_delay_seconds(self) -> float:
        """For how long our own loop has stood still during the look."""
        return self._delay.seconds

    def left(self) -> float:
        """Return the seconds until the deadline, at least a moment."""
        return max(_SOON, self.deadline - self._loop.time())

    def longest(self) -> float:
        """Return a limit for parts of a question that never ends before ``ask`` ends the whole."""
        return self.left() + MOST_DELAY_SECONDS

    def end(self) -> None:
        """End the look: no question is asked after it."""
        self._delay.end()

    async def ask(self, question: Awaitable[R]) -> R:
        """Return the answer to a question; raise ``NoAnswer`` with the reason for the row."""
        try:
            return await self._in_time(question)
        except (ServiceRefused, ZooKeeperRefused, BadBreadcrumb, ValueError) as error:
            raise NoAnswer(f"{ANSWERS_WITH_AN_ERROR}: {error}") from error
        except (
            TimeoutError,
            OSError,
            EOFError,
            ServiceUnreachable,
            ZooKeeperUnavailable,
        ) as error:
            raise NoAnswer(self._in_words(error)) from error

    async def _in_time(self, question: Awaitable[R]) -> R:
        asking = asyncio.ensure_future(question)
        try:
            while not asking.done():
                if self._loop.time() >= self.deadline:
                    asking.cancel()
                    await asyncio.wait({asking}, timeout=HANG_UP_SECONDS)
                    raise TimeoutError from _end_of(asking)
                await asyncio.wait({asking}, timeout=self.left())
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking}, timeout=HANG_UP_SECONDS)
        return asking.result()

    def _in_words(self, error: BaseException) -> str:
        causes = list(_causes(error))
        if any(isinstance(one, ConnectionRefusedError) for one in causes):
            return NOT_RUNNING
        if name := next(filter(None, map(waited_for, causes)), ""):
            return name
        if any(isinstance(one, TimeoutError) for one in causes) or self.left() <= _SOON:
            return f"{NO_ANSWER} in {self.seconds:g} s"
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        return str(error) or type(error).__name__


async def fetch(address: HostPort, target: str = "/status") -> Mapping[str, object]:
    """Fetch the JSON object at a path with its query.

    Raises ``ValueError`` if it is none, else as ``http_get``.
    """
    before = datetime.now(UTC)
    answer = await http_get(address, target, most_bytes=MAX_ANSWER_BYTES)
    clock = ahead(answer.headers.get("date", ""), before, datetime.now(UTC))
    if answer.status == HTTPStatus.FORBIDDEN:
        why = answer.body[:MAX_ENTRY_CHARACTERS].decode("ascii", "replace").strip()
        raise ValueError(f"HTTP 403: {escape(why)}")
    if answer.status != HTTPStatus.OK:
        raise ValueError(f"HTTP {answer.status}")
    try:
        page = json.loads(answer.body)
    except RecursionError as failure:
        raise ValueError("its status page is nested too deeply") from failure
    if not isinstance(page, dict):
        raise ValueError("its status page is no JSON object")  # noqa: TRY004 - it is an answer's fault
    return {**cast("Mapping[str, object]", page), CLOCK_FIELD: clock}


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """Everything until the peer closes.  Raises ``ValueError`` beyond ``MAX_ANSWER_BYTES``."""
    found = bytearray()
    while chunk := await reader.read(64 * 1024):
        found += chunk
        if len(found) > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")
    return bytes(found)


def _end_of(asking: "asyncio.Future[R]") -> BaseException | None:
    """Return what a question that was given up ended with: it may say what it has waited for."""
    try:
        return asking.exception() if asking.done() else None
    except asyncio.CancelledError as given_up:
        return given_up


def _causes(error: BaseException) -> tuple[BaseException, ...]:
    """Return the error and its causes, also those that a happy-eyeballs connect has gathered."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or one in found:
            continue
        found.append(one)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return tuple(found)
