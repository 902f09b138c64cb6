"""What a fencing attempt over ssh has shown: the table of return codes.

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
"""A probe tries each address of a name, and one that refuses says nothing of another."""


class Port(StrEnum):
    """Whether a process listens on the target's port, as one probe saw it."""

    LISTENS = "listens"
    CLOSED = "is closed"
    UNKNOWN = "did not answer"


@dataclass(frozen=True, slots=True)
class SshResult:
    """An outcome and its reason, for the report."""

    outcome: FencingOutcome
    detail: str


def port_seen(status: int, said: str, host: str) -> Port:
    """Return what one run of a netcat, or of bash, on the target's host shows.

    Status 1 alone proves nothing: a netcat ends with it where nothing answered in time, and where
    it does not know an option.  Only the kernel's refusal, in words, shows a closed port.
    """
    if status == 0:
        return Port.LISTENS
    words = said.replace(host, "").lower()  # a host may be called timeout1
    if _REFUSED in words and _UNANSWERED.search(words) is None:
        return Port.CLOSED
    return Port.UNKNOWN


def port_at(addresses: Iterable[Port]) -> Port:
    """Return what is known of a port at all addresses of a name: one silent one is a doubt."""
    seen = set(addresses)
    if Port.LISTENS in seen:
        return Port.LISTENS
    return Port.CLOSED if seen == {Port.CLOSED} else Port.UNKNOWN


def judge_killed(status: int, pids: frozenset[int], left: frozenset[int]) -> SshResult | None:
    """Decide from ``fuser -k`` alone, or return None where only the port can decide.

    ``pids`` are the processes that it named, ``left`` those on the port a moment after the kill.
    Other ones than those that were killed do no harm: a supervisor has started the NameNode anew,
    and it starts as standby.
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
    """Decide where ``fuser`` named no process: there is none, or it may not see it.

    ``on_host`` is None where it was not asked for.  Hadoop takes any failure of ``nc``, also that
    it is not installed, for a closed port.  A port that is silent from here is no closed one: a
    process that hangs answers no connection either.
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
