"""Why a process did not answer, and what follows: it is gone, or its state is unknown.  Pure."""

from enum import StrEnum
from typing import Final

NO_ANSWER: Final = "no answer"
"""How the reason begins where nothing came back in time."""
NOT_RUNNING: Final = "not running (connection refused)"
ANSWERS_WITH_AN_ERROR: Final = "answers with an error"


class Absence(StrEnum):
    """What is known of a process that gave no usable answer; the word is what tables show."""

    DOWN = "DOWN"
    """Its host refuses the connection: no process listens there."""
    ERROR = "ERROR"
    """Something answers there, and says no."""
    UNKNOWN = "UNKNOWN"
    """Nothing came back: it may be slow, frozen, gone, or beyond a broken network."""


def absence_of(error: str) -> Absence:
    """Classify the absence that a row's ``error`` describes."""
    if error == NOT_RUNNING:
        return Absence.DOWN
    if error.startswith((ANSWERS_WITH_AN_ERROR, "up, but", "its status page")):
        return Absence.ERROR
    return Absence.UNKNOWN


def is_silence(error: str | None) -> bool:
    """Return whether no answer came at all; a refused connection is an answer."""
    return error is not None and error.startswith(NO_ANSWER)


def is_unknown(error: str | None) -> bool:
    """Return whether the process's state is unknown: it was silent, or could not be asked."""
    return error is not None and absence_of(error) is Absence.UNKNOWN


def ask_again(host: str) -> str:
    """Advise what to do about a silent process, without killing one that may only be slow."""
    return (
        f"ask again with more time (--timeout 10); if it stays silent, look on {host} whether the "
        "process runs and how busy the machine is"
    )
