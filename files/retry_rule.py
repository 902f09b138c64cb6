"""When a call to NameNodes is made again, and where: Hadoop's FailoverOnNetworkExceptionRetry.

A call is repeated under its own number, so that a NameNode that has carried it out answers from its
retry cache; therefore a lost answer may be asked for again whatever the call is.

Pure.
"""

from enum import Enum, auto
from typing import Final

from files.errors import Refused, refusal
from ha.record import dataclass, replace
from ha.rpc.errors import ConnectFailed, RemoteFault, RpcError
from ha.rpc.java_names import RETRIABLE, STANDBY_EXCEPTION

FIRST_WAIT_SECONDS: Final = 0.1
LONGEST_WAIT_SECONDS: Final = 3.0
MOST_DOUBLINGS: Final = 10


class Failure(Enum):
    """Why a call has no result yet."""

    NOT_CONNECTED = auto()
    UNANSWERED = auto()
    NOT_ACTIVE = auto()
    LATER = auto()


@dataclass(frozen=True, slots=True)
class Tries:
    """What a call has met so far; ``unanswered``: it may have been carried out."""

    moves: int = 0
    waits: int = 0
    unanswered: bool = False


@dataclass(frozen=True, slots=True)
class Again:
    """Try again after ``seconds``; at the next NameNode if ``move``."""

    tries: Tries
    move: bool
    seconds: float


def failure_of(problem: RpcError | RemoteFault) -> Failure | Refused:
    """Return how an attempt failed, or the refusal that is the result of the call."""
    match problem:
        case RemoteFault(java_class=java_class) if java_class == STANDBY_EXCEPTION:
            return Failure.NOT_ACTIVE
        case RemoteFault(java_class=java_class) if java_class == RETRIABLE:
            return Failure.LATER
        case RemoteFault():
            return refusal(problem)
        case ConnectFailed():
            return Failure.NOT_CONNECTED
        case _:
            return Failure.UNANSWERED


def again(failure: Failure, tries: Tries, *, namenodes: int, chance: float) -> Again:
    """Decide how the call is made again.

    Each NameNode is asked once without waiting; then the waits double.  ``chance``, from 0 to 1,
    spreads the clients of a NameNode that has failed.
    """
    if failure is Failure.LATER:
        wait = _seconds(tries.waits, chance)
        return Again(replace(tries, waits=tries.waits + 1), move=False, seconds=wait)
    moved = replace(
        tries,
        moves=tries.moves + 1,
        unanswered=tries.unanswered or failure is Failure.UNANSWERED,
    )
    rounds = moved.moves - namenodes
    return Again(moved, move=True, seconds=_seconds(rounds, chance) if rounds >= 0 else 0.0)


def _seconds(doublings: int, chance: float) -> float:
    wait = FIRST_WAIT_SECONDS * 2.0 ** min(doublings, MOST_DOUBLINGS)
    return min(wait, LONGEST_WAIT_SECONDS) * (0.5 + chance)
