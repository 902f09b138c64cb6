"""How a call ended, as its caller is informed, and counted by kind."""

import structlog
from google.protobuf.message import EncodeError, Message

from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.java_names import IO_EXCEPTION, RPC_SERVER
from ha.rpc.metrics import MethodMeters
from ha.rpc.packets import Detail, encode_failure, encode_success
from ha.rpc.session import Asked, Hangup

log = structlog.get_logger()


def told(
    asked: Asked, host: str, outcome: Message | Exception, meters: MethodMeters
) -> bytes | Hangup:
    """Return the answer to a call: a frame, or the last bytes of its connection."""
    if isinstance(outcome, Message):
        try:
            data = encode_success(asked.key, outcome.SerializeToString())
        except EncodeError as failure:  # a required field is missing
            outcome = failure
        else:
            meters.succeeded += 1
            return data
    match outcome:
        case RemoteFault(fatal=True):
            meters.refused += 1
            return _fatal(asked, outcome)
        case RemoteFault():
            meters.refused += 1
            return _error(asked, outcome.java_class, outcome.message)
        case MalformedFrame():
            meters.refused += 1
            return _error(asked, RPC_SERVER, str(outcome), Detail.ERROR_RPC_SERVER)
        case _:
            meters.failed += 1
            log.error("rpc.handler.failed", method=asked.method, host=host, exc_info=outcome)
            return _error(asked, IO_EXCEPTION, f"{type(outcome).__name__}: {outcome}")


def _error(
    asked: Asked, java_class: str, message: str, detail: Detail = Detail.ERROR_APPLICATION
) -> bytes:
    return encode_failure(asked.key, java_class, message, detail)


def _fatal(asked: Asked, fault: RemoteFault) -> Hangup:
    last = encode_failure(
        asked.key, fault.java_class, fault.message, Detail.FATAL_UNKNOWN, fatal=True
    )
    return Hangup(last, str(fault))
