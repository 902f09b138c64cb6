"""Derives the outcome of sshfence from exit statuses and probes of the port.

See docs/reference/fencing.md#sshfence.

Pure.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from fencing.model import FencingOutcome
from ha.record import dataclass

NOT_FOUND: Final = 127
"""A shell's status for a command that is not installed."""
_REFUSED: Final = "connection refused"
_UNANSWERED: Final = re.compile(r"time ?out|timed ?out|in progress|unreachable|no route|reset")
"""A probe tries each address of a name; the refusal of one proves nothing about the others."""


class Port(StrEnum):
    """Whether a process listens on the target's port, by one probe."""

    LISTENS = "listens"
    CLOSED = "is closed"
    UNKNOWN = "did not answer"


@dataclass(frozen=True, slots=True)
class SshResult:
    """An outcome and its reason, for the report."""

    outcome: FencingOutcome
    detail: str


def port_seen(status: int, said: str, host: str) -> Port:
    """Return the state of the port by one run of netcat or bash on the target's host.

    Only the text "connection refused" proves a closed port.  Status 1 does not: netcat also ends
    with it after a timeout, and for an unknown option.
    """
    if status == 0:
        return Port.LISTENS
    words = said.replace(host, "").lower()  # a host may be called timeout1
    if _REFUSED in words and _UNANSWERED.search(words) is None:
        return Port.CLOSED
    return Port.UNKNOWN


def port_at(addresses: Iterable[Port]) -> Port:
    """Return the state of a port at all addresses of a name: CLOSED only if all refuse."""
    seen = set(addresses)
    if Port.LISTENS in seen:
        return Port.LISTENS
    return Port.CLOSED if seen == {Port.CLOSED} else Port.UNKNOWN


def judge_killed(status: int, pids: frozenset[int], left: frozenset[int]) -> SshResult | None:
    """Return the result of ``fuser -k``, or None if the port must be probed.

    ``pids`` are the processes that it killed, ``left`` those on the port after that.  A new process
    does no harm: it is a NameNode that a supervisor has restarted, and starts as standby.
    """
    if status == 0 and pids:
        unkillable = sorted(pids & left)
        if unkillable:
            return SshResult(FencingOutcome.FAILED, f"killed, but still there: {_pids(unkillable)}")
        return SshResult(FencingOutcome.SUCCEEDED, f"killed {_pids(sorted(pids))}")
    if status in (0, 1):
        return None
    if status == NOT_FOUND:
        return SshResult(
            FencingOutcome.FAILED, "fuser is not installed on the victim's host (Debian: psmisc)"
        )
    return SshResult(FencingOutcome.FAILED, f"fuser ended with status {status}")


def judge_port(on_host: Port | None, from_here: Port) -> SshResult:
    """Return the result if ``fuser`` named no process: there is none, or it may not see it.

    ``on_host`` is None without a probe there.  Hadoop takes any failure of ``nc``, even a missing
    ``nc``, for a closed port.  A port that does not answer from here is not closed: a hanging
    process does not answer either.
    """
    there = "" if on_host is None else f"{on_host} there and "
    seen = f"the port {there}{from_here} from here"
    if Port.LISTENS in (on_host, from_here):
        return SshResult(
            FencingOutcome.FAILED,
            f"a process listens that fuser could not kill: {seen}; may this user kill it?",
        )
    if on_host is Port.CLOSED and from_here is Port.CLOSED:
        return SshResult(FencingOutcome.SUCCEEDED, f"there was no process to kill: {seen}")
    silent = "this host reach the port" if on_host is None else "nc or bash be there"
    return SshResult(
        FencingOutcome.FAILED,
        f"fuser named no process, and nothing confirms it: {seen} → let this user see the "
        f"NameNode's process, and {silent}",
    )


def _pids(pids: list[int]) -> str:
    return "process " + ", ".join(map(str, pids))
