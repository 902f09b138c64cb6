"""What it shows of a daemon that a call to it got no answer: silence, a sign of life, or nothing.

One table for every probe, with certificates as without.  A certificate that is not accepted, or
bytes that are not Hadoop RPC, come from a process that lives: they are no silence.
"""

import errno
import re
import socket
import ssl
from enum import Enum, auto
from typing import Final

from ha.rpc.errors import ConnectFailed, DeadlineExceeded, MalformedFrame
from ha.service.errors import ServiceUnreachable


class NoAnswer(Enum):
    """Why there was none."""

    LATE = auto()
    """It, or the host, was waited for in vain, or a router says that the host does not answer."""
    NOT_LISTENING = auto()
    """The host refused the connection: no process listens there."""
    UNUSABLE = auto()
    """A living process answered with a certificate or bytes that are of no use to us."""
    BROKEN = auto()
    """The connection ended: the process may have ended, or may live."""
    NOT_ASKED = auto()
    """Nothing was sent: its name has no address, or our own host no network."""


_HOST_SILENT: Final = frozenset({errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT})
_HANGS_UP: Final = ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError


def why_no_answer(failure: ServiceUnreachable) -> NoAnswer:
    """Return what the end of a call in vain shows of the process that was called."""
    match failure.__cause__:
        case DeadlineExceeded():
            return NoAnswer.LATE
        case MalformedFrame():
            return NoAnswer.UNUSABLE
        case ConnectFailed(__cause__=OSError() as cause):
            return _classify_failure(cause)
        case ConnectFailed():
            return NoAnswer.NOT_ASKED
        case _:
            return NoAnswer.BROKEN


def _classify_failure(failure: OSError) -> NoAnswer:
    match failure:
        case TimeoutError():
            return NoAnswer.LATE
        case ConnectionRefusedError():
            return NoAnswer.NOT_LISTENING
        case _ if isinstance(failure, _HANGS_UP):
            return NoAnswer.BROKEN
        case ssl.SSLError():
            return NoAnswer.UNUSABLE
        case socket.gaierror():
            return NoAnswer.NOT_ASKED
        case _:
            return _by_number(failure)


def _by_number(failure: OSError) -> NoAnswer:
    # A name with several addresses has no number of its own, only the text of what each brought
    # (ha.daemon.event_loop).
    found = {failure.errno} if failure.errno else _numbers(str(failure))
    if found == {errno.ECONNREFUSED}:
        return NoAnswer.NOT_LISTENING
    silent = bool(found) and found <= _HOST_SILENT | {errno.ECONNREFUSED}
    return NoAnswer.LATE if silent else NoAnswer.NOT_ASKED


def _numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\[Errno (\d+)\]", text)}
