"""What the end of a call in vain shows of the process that was called, and who counts it how."""

import errno
import socket
import ssl

import pytest

from ha.rpc.errors import (
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    MalformedFrame,
    RpcError,
)
from ha.service.errors import ServiceUnreachable
from ha.service.faults import speaking_to
from ha.service.no_answer import NoAnswer, why_no_answer
from ha.zkfc.takeover import superseded_process
from ha.zkfc.takeover.superseded import Answer as HangAnswer
from ha.zkfc.witness import runner
from ha.zkfc.witness.core import Answer

SEVERAL = "Multiple exceptions: [Errno {}] Connect call failed, [Errno {}] Connect call failed"
NOT_CONNECTED: dict[str, tuple[BaseException, NoAnswer]] = {
    "no connection in time": (TimeoutError(), NoAnswer.LATE),
    "the kernel gave up": (OSError(errno.ETIMEDOUT, "timed out"), NoAnswer.LATE),
    "no route to the host": (OSError(errno.EHOSTUNREACH, "no route"), NoAnswer.LATE),
    "refused": (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), NoAnswer.NOT_LISTENING),
    "refused at each address": (OSError(SEVERAL.format(111, 111)), NoAnswer.NOT_LISTENING),
    "refused at one, silent at one": (OSError(SEVERAL.format(111, 113)), NoAnswer.LATE),
    "refused at one, no network to one": (OSError(SEVERAL.format(111, 101)), NoAnswer.NOT_ASKED),
    "a wrong certificate": (
        ssl.SSLCertVerificationError("its certificate is that of zkfc nn1"), NoAnswer.UNUSABLE),
    "it refuses our certificate": (ssl.SSLError(1, "tlsv13 alert"), NoAnswer.UNUSABLE),
    "it speaks no TLS": (ssl.SSLError(1, "wrong version number"), NoAnswer.UNUSABLE),
    "it hangs up in the handshake": (ssl.SSLEOFError(8, "EOF occurred"), NoAnswer.BROKEN),
    "it closes in the handshake": (ssl.SSLZeroReturnError(6, "closed"), NoAnswer.BROKEN),
    "reset in the handshake": (ConnectionResetError(errno.ECONNRESET, "reset"), NoAnswer.BROKEN),
    "broken in the handshake": (BrokenPipeError(errno.EPIPE, "broken"), NoAnswer.BROKEN),
    "its name does not resolve": (
        socket.gaierror(socket.EAI_NONAME, "not known"), NoAnswer.NOT_ASKED),
    "the resolver gave up": (socket.gaierror(socket.EAI_AGAIN, "again"), NoAnswer.NOT_ASKED),
    "our host has no network": (OSError(errno.ENETUNREACH, "no network"), NoAnswer.NOT_ASKED),
    "we have no files left": (OSError(errno.EMFILE, "too many open files"), NoAnswer.NOT_ASKED),
    "no address": (ValueError("label empty"), NoAnswer.NOT_ASKED),
}  # fmt: skip
ASKED_IN_VAIN: dict[str, tuple[RpcError, NoAnswer]] = {
    "no answer in time": (DeadlineExceeded("late"), NoAnswer.LATE),
    "no Hadoop RPC": (MalformedFrame("HTTP/1.1"), NoAnswer.UNUSABLE),
    "the connection broke": (ConnectionLost("closed by the peer"), NoAnswer.BROKEN),
}


def unreachable(failure: RpcError) -> ServiceUnreachable:
    with pytest.raises(ServiceUnreachable) as caught, speaking_to("nn1"):
        raise failure
    return caught.value


@pytest.mark.parametrize(("cause", "expected"), NOT_CONNECTED.values(), ids=NOT_CONNECTED)
def test_no_connection(cause: BaseException, expected: NoAnswer) -> None:
    failed = ConnectFailed("no connection")
    failed.__cause__ = cause
    assert why_no_answer(unreachable(failed)) is expected


@pytest.mark.parametrize(("failure", "expected"), ASKED_IN_VAIN.values(), ids=ASKED_IN_VAIN)
def test_no_answer_over_a_connection(failure: RpcError, expected: NoAnswer) -> None:
    assert why_no_answer(unreachable(failure)) is expected


def test_each_probe_counts_each_end_as_silence_or_as_none() -> None:
    silent = {
        "the witness asks the owner of the lock": {
            one for one in NoAnswer if runner.ANSWERS[one] is Answer.SILENT
        },
        "a controller asks its superseded NameNode": {
            one for one in NoAnswer if superseded_process.ANSWERS[one] is HangAnswer.SILENT
        },
    }
    assert silent == {
        "the witness asks the owner of the lock": {NoAnswer.LATE, NoAnswer.NOT_LISTENING},
        "a controller asks its superseded NameNode": {NoAnswer.LATE},
    }
