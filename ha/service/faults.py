"""Errors of a service as Java exceptions, and back.  Pure."""

from collections.abc import Iterator
from contextlib import contextmanager

from ha.rpc.errors import ConnectFailed, RemoteFault, RpcError
from ha.rpc.java_names import ACCESS_CONTROL, HEALTH_CHECK_FAILED, IO_EXCEPTION, SERVICE_FAILED
from ha.service import errors

_KINDS: dict[str, type[errors.ServiceRefused]] = {
    HEALTH_CHECK_FAILED: errors.HealthCheckFailed,
    SERVICE_FAILED: errors.ServiceFailed,
    ACCESS_CONTROL: errors.AccessDenied,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def refusal_of(fault: RemoteFault) -> errors.ServiceRefused:
    """Return the refusal that a Java exception means."""
    kind = _KINDS.get(fault.java_class)
    if kind is None:
        return errors.ServiceFaulted(fault.java_class, fault.reason)
    return kind(fault.reason)


def fault_of(refusal: errors.ServiceRefused) -> RemoteFault:
    """Return the Java exception for a refusal."""
    if isinstance(refusal, errors.ServiceFaulted):
        return RemoteFault(refusal.java_class, refusal.reason)
    return RemoteFault(_NAMES.get(type(refusal), IO_EXCEPTION), str(refusal))


@contextmanager
def speaking_to(peer: str) -> Iterator[None]:
    """Translate what a call to ``peer`` raises, once, at the edge."""
    try:
        yield
    except RemoteFault as fault:
        raise refusal_of(fault) from fault
    except RpcError as failure:
        sent = not isinstance(failure, ConnectFailed)
        raise errors.ServiceUnreachable(f"{peer}: {failure}", sent=sent) from failure


@contextmanager
def answering() -> Iterator[None]:
    """Translate what a service raises into what travels."""
    try:
        yield
    except errors.ServiceRefused as refusal:
        raise fault_of(refusal) from refusal
