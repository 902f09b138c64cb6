"""Looks up hosts' names for the whole process: in the system's order, and never in its way.

The system's resolver may keep a thread for 10 to 20 seconds when the name server is silent.
asyncio's lookups run in threads that the end of a loop waits for, gRPC's own resolver asks DNS for
what /etc/hosts has, and kazoo resolves all names before it tries the first.  Here each lookup has a
thread that nothing waits for, callers wait as long as they like, and an address that was found
once is used for as long as the resolver finds no other.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final

from ha.record import dataclass

Address = tuple[Any, ...]
Found = tuple[int, int, int, str, Address]
"""One answer of ``socket.getaddrinfo``."""
Look = Callable[..., Sequence[Any]]
"""``socket.getaddrinfo``, or what stands for it."""

MOST_LOOKUPS: Final = 64
"""Threads at once; each waits for the resolver."""
MOST_KNOWN: Final = 4096
BRIEFLY_SECONDS: Final = 0.05
"""Of patience where an address is known already; the lookup goes on in the background."""


class Unresolved(socket.gaierror):
    """A name that has no address now; ``strerror`` says which, and why.

    ``late``: the resolver has not answered yet, and may still find one.
    """

    def __init__(self, host: str, number: int, reason: str, *, late: bool = False) -> None:
        super().__init__(number, _sentence(host, reason))
        self.late = late

    def __str__(self) -> str:
        """Return the sentence alone: the resolver's numbers mean nothing to an operator."""
        return str(self.strerror)


@dataclass(frozen=True, slots=True)
class _Question:
    host: str
    family: int = 0
    kind: int = socket.SOCK_STREAM
    protocol: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class _Lookup:
    since: float
    answer: "Future[tuple[Found, ...]]"


class Names:
    """The lookups under way, and what the last ones found.  Any thread may ask."""

    def __init__(self, look: Look = socket.getaddrinfo) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._under_way: dict[_Question, _Lookup] = {}
        self._known: dict[_Question, tuple[Found, ...]] = {}
        self._failed: dict[str, str] = {}

    async def getaddrinfo(
        self,
        host: str | None,
        port: int | None,
        *,
        family: int = 0,
        kind: int = 0,
        protocol: int = 0,
        flags: int = 0,
    ) -> list[Found]:
        """Answer as ``loop.getaddrinfo`` does, at once from memory where the resolver is silent.

        Raises Unresolved for a name without an address.  A caller that cannot wait for the
        resolver's end has a deadline of its own, and asks ``waited_for`` what has used it up.
        """
        if host is None or _is_numeric(host):
            return list(socket.getaddrinfo(host, port, family, kind, protocol, flags))
        question = _Question(host, family, kind, protocol, flags)
        lookup, known = self._begin(question)
        waiting = asyncio.wrap_future(lookup.answer)
        if known:
            await asyncio.wait([waiting], timeout=self._patience(lookup, host))
            if not waiting.done() or waiting.exception() is not None:
                # Its failure is noted, and comes out of a later lookup if it lasts.
                waiting.add_done_callback(_seen)
                return _at_port(known, port)
        try:
            return _at_port(await waiting, port)
        except asyncio.CancelledError as given_up:
            given_up.args = (self.trouble(host),)
            raise

    def addresses(self, host: str, port: int, within_seconds: float) -> list[Found]:
        """Answer a thread that may wait for this long; the loop's own thread asks by ``await``.

        Raises Unresolved.
        """
        if _is_numeric(host):
            return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        lookup, known = self._begin(_Question(host))
        patience = min(within_seconds, self._patience(lookup, host)) if known else within_seconds
        try:
            return _at_port(lookup.answer.result(patience), port)
        except (Unresolved, TimeoutError) as failure:
            if known:
                return _at_port(known, port)
            if isinstance(failure, Unresolved):
                raise
            waited = time.monotonic() - lookup.since
            raise Unresolved(host, socket.EAI_AGAIN, _silent(waited), late=True) from None

    def known(self, host: str, port: int) -> list[Found]:
        """Return what the last lookup of that name for a connection found, or else nothing."""
        if _is_numeric(host):
            return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return _at_port(self._known.get(_Question(host), ()), port)

    def look_again(self, host: str) -> None:
        """Have ``known`` learn the newest addresses; returns at once."""
        if not _is_numeric(host):
            self._begin(_Question(host))

    def trouble(self, host: str) -> str:
        """Say why a connection to that host may have failed in its name; empty if it has not."""
        with self._lock:
            found = [one for asked, one in self._under_way.items() if asked.host == host]
            failed = self._failed.get(host, "")
        waited = max((time.monotonic() - one.since for one in found), default=0.0)
        why = failed or (_silent(waited) if waited > BRIEFLY_SECONDS else "")
        return _sentence(host, why) if why else ""

    def _patience(self, lookup: _Lookup, host: str) -> float:
        """Return how long to wait where an address is known: not again after it was in vain."""
        if self._failed.get(host):
            return 0.0
        return max(0.0, lookup.since + BRIEFLY_SECONDS - time.monotonic())

    def _begin(self, question: _Question) -> tuple[_Lookup, tuple[Found, ...]]:
        """Return the lookup of that question, and what an earlier one found."""
        with self._lock:
            known = self._known.get(question, ())
            lookup = self._under_way.get(question)
            if lookup is not None:
                return lookup, known
            lookup = _Lookup(time.monotonic(), Future())
            lookup.answer.set_running_or_notify_cancel()  # no caller ends it for the others
            full = len(self._under_way) >= MOST_LOOKUPS
            if not full:
                self._under_way[question] = lookup
        if full:
            busy = f"{MOST_LOOKUPS} other names wait for the resolver"
            lookup.answer.set_exception(Unresolved(question.host, socket.EAI_AGAIN, busy))
            return lookup, known
        name = f"look up {question.host}"
        thread = threading.Thread(target=self._run, args=(question,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system gives no more threads
            self._settle(question, (), Unresolved(question.host, socket.EAI_AGAIN, str(error)))
        return lookup, known

    def _run(self, question: _Question) -> None:
        host = question.host
        found: tuple[Found, ...] = ()
        failure = Unresolved(host, socket.EAI_NONAME, "it has no address")
        try:
            found = tuple(
                self._look(
                    host, 0, question.family, question.kind, question.protocol, question.flags
                )
            )
        except OSError as error:
            failure = Unresolved(host, error.errno or socket.EAI_FAIL, error.strerror or str(error))
        except ValueError as error:  # a label of more than 63 letters, or of none; a NUL
            failure = Unresolved(host, socket.EAI_NONAME, str(error.__cause__ or error))
        finally:
            # After any other error, too: a lookup without an end would be waited for by all.
            self._settle(question, found, failure)

    def _settle(self, question: _Question, found: tuple[Found, ...], failure: Unresolved) -> None:
        """End a lookup: keep what was found, or note the failure, and answer all that wait."""
        host = question.host
        with self._lock:
            lookup = self._under_way.pop(question)
            if found:
                self._failed.pop(host, None)
                self._known.pop(question, None)
                self._known[question] = found
            else:
                self._failed[host] = str(failure.strerror).partition(_UNRESOLVED)[2]
            for kept in (self._known, self._failed):
                while len(kept) > MOST_KNOWN:
                    kept.pop(next(iter(kept)))  # type: ignore[call-overload]
        if found:
            lookup.answer.set_result(found)
        else:
            lookup.answer.set_exception(failure)


NAMES: Final = Names()
"""The process's own."""


_UNRESOLVED: Final = "does not resolve: "


def waited_for(failure: BaseException | None) -> str:
    """Return the sentence on what a time-out has waited for, if not for the peer; or nothing."""
    while failure is not None:
        if isinstance(failure, asyncio.CancelledError) and str(failure):
            return str(failure)
        failure = failure.__cause__ or failure.__context__
    return ""


def _sentence(host: str, why: str) -> str:
    shown = host if host.isprintable() else repr(host)
    return f"the name {shown} {_UNRESOLVED}{why}"


def _silent(seconds: float) -> str:
    return f"the resolver has not answered within {seconds:.1f} s"


def _is_numeric(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError):
        return not host
    return True


def _at_port(found: Sequence[Found], port: int | None) -> list[Found]:
    return [
        (family, kind, protocol, name, (address[0], port or 0, *address[2:]))
        for family, kind, protocol, name, address in found
    ]


def _seen(answer: "asyncio.Future[tuple[Found, ...]]") -> None:
    if not answer.cancelled():
        answer.exception()
