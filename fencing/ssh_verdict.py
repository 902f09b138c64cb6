"""What a fencing attempt over ssh has shown: the table of return codes.

See docs/reference/fencing.md#sshfence.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencing.model import Outcome

NOT_FOUND: Final = 127
"""A shell's status for a command that is not installed."""


class Port(StrEnum):
    """Whether anybody listens on the victim's port, as one probe saw it."""

    LISTENS = "listens"
    CLOSED = "is closed"
    UNKNOWN = "did not answer"


@dataclass(frozen=True, slots=True)
class Killed:
    """What ``fuser -k`` did: its status, and the processes that it named."""

    status: int
    pids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome and its reason, for the report."""

    outcome: Outcome
    detail: str


def judge_killed(killed: Killed, left: frozenset[int]) -> Verdict | None:
    """Decide from ``fuser`` alone, or None where only the port can tell.

    ``left`` are the processes on the port a moment after the kill.  Other ones than those that
    were killed do no harm: a supervisor has started the NameNode anew, and it starts as standby.
    """
    if killed.status == 0:
        unkillable = sorted(killed.pids & left)
        if unkillable:
            return Verdict(Outcome.FAILED, f"killed, but still there: {_pids(unkillable)}")
        return Verdict(Outcome.SUCCEEDED, f"killed {_pids(sorted(killed.pids))}")
    if killed.status == 1:
        return None
    if killed.status == NOT_FOUND:
        return Verdict(
            Outcome.FAILED, "fuser is not installed on the victim's host (Debian: psmisc)"
        )
    return Verdict(Outcome.FAILED, f"fuser ended with status {killed.status}")


def judge_port(on_host: Port, from_here: Port) -> Verdict:
    """Decide where ``fuser`` found nobody: there is nobody, or it may not see him.

    Hadoop takes any failure of ``nc``, also that it is not installed, for a closed port.
    """
    seen = f"the port {on_host} there and {from_here} from here"
    if Port.LISTENS in (on_host, from_here):
        return Verdict(
            Outcome.FAILED,
            f"a process listens that fuser could not kill: {seen}; may this user kill it?",
        )
    if on_host is Port.CLOSED:
        return Verdict(Outcome.SUCCEEDED, f"there was no process to kill: {seen}")
    return Verdict(Outcome.FAILED, f"fuser found no process, and nothing confirms it: {seen}")


def _pids(pids: list[int]) -> str:
    return "process " + ", ".join(map(str, pids)) if pids else "what was there"
