"""What a fencing attempt over ssh has shown: the table of return codes.

See docs/reference/fencing.md#sshfence.

Pure.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencing.model import FencingOutcome

NOT_FOUND: Final = 127
"""A shell's status for a command that is not installed."""


class Port(StrEnum):
    """Whether a process listens on the target's port, as one probe saw it."""

    LISTENS = "listens"
    CLOSED = "is closed"
    UNKNOWN = "did not answer"


@dataclass(frozen=True, slots=True)
class Killed:
    """What ``fuser -k`` did: its status, and the processes that it named."""

    status: int
    pids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class SshResult:
    """An outcome and its reason, for the report."""

    outcome: FencingOutcome
    detail: str


def judge_killed(killed: Killed, left: frozenset[int]) -> SshResult | None:
    """Decide from ``fuser`` alone, or return None where only the port can decide.

    ``left`` are the processes on the port a moment after the kill.  Other ones than those that were
    killed do no harm: a supervisor has started the NameNode anew, and it starts as standby.
    """
    if killed.status == 0:
        unkillable = sorted(killed.pids & left)
        if unkillable:
            return SshResult(FencingOutcome.FAILED, f"killed, but still there: {_pids(unkillable)}")
        return SshResult(FencingOutcome.SUCCEEDED, f"killed {_pids(sorted(killed.pids))}")
    if killed.status == 1:
        return None
    if killed.status == NOT_FOUND:
        return SshResult(
            FencingOutcome.FAILED, "fuser is not installed on the victim's host (Debian: psmisc)"
        )
    return SshResult(FencingOutcome.FAILED, f"fuser ended with status {killed.status}")


def judge_port(on_host: Port, from_here: Port) -> SshResult:
    """Decide where ``fuser`` found no process: there is none, or it may not see it.

    Hadoop takes any failure of ``nc``, also that it is not installed, for a closed port.
    """
    seen = f"the port {on_host} there and {from_here} from here"
    if Port.LISTENS in (on_host, from_here):
        return SshResult(
            FencingOutcome.FAILED,
            f"a process listens that fuser could not kill: {seen}; may this user kill it?",
        )
    if on_host is Port.CLOSED:
        return SshResult(FencingOutcome.SUCCEEDED, f"there was no process to kill: {seen}")
    return SshResult(
        FencingOutcome.FAILED, f"fuser found no process, and nothing confirms it: {seen}"
    )


def _pids(pids: list[int]) -> str:
    return "process " + ", ".join(map(str, pids)) if pids else "what was there"
