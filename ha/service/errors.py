"""The errors of a call to a NameNode or a controller: a refusal with its kind, or no answer.

ServiceError
├── ServiceRefused          it answered no
│   ├── HealthCheckFailed       it is not well, and says why
│   ├── ServiceFailed           it cannot do what was asked
│   ├── AccessDenied            not from us, or not from this kind of requester
│   └── ServiceFaulted          any other Java exception, by name (e.g. still starting)
└── ServiceUnreachable      no answer; whether it acted is unknown, unless nothing was sent
"""

from typing import Final

CANNOT_TELL_ACTIVE: Final = "cannot tell who is active: "
"""How a ZKFC's refusal of a hand-over begins that it could not even begin."""
NO_ZOOKEEPER_TO_ASK: Final = f"{CANNOT_TELL_ACTIVE}no ZooKeeper of "
"""The same where no ZooKeeper answers (in the words of ha.elector.zookeeper.znodes): the asking
program may say that nothing was changed.
"""


class ServiceError(Exception):
    """Everything that a call to a service raises."""


class ServiceRefused(ServiceError):
    """The service answered with an error."""


class HealthCheckFailed(ServiceRefused):
    """The service answers, and says that it is not well."""


class ServiceFailed(ServiceRefused):
    """The service could not do it."""


class AccessDenied(ServiceRefused):
    """The caller may not ask for this, or this kind of caller may not.

    See docs/reference/rpc.md#requesters-of-a-transition.
    """


class ServiceFaulted(ServiceRefused):
    """An exception outside the protocol; Hadoop's health monitor takes it for no answer."""

    def __init__(self, java_class: str, reason: str) -> None:
        super().__init__(f"{java_class}: {reason}")
        self.java_class = java_class
        self.reason = reason


class ServiceUnreachable(ServiceError):
    """No answer.  ``__cause__`` is the ``RpcError``.

    Attributes:
        sent: whether the call may have reached the service, and so may have been carried out.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent

    @property
    def refused(self) -> bool:
        """Whether its host refused the connection: then no process listens there."""
        cause: BaseException | None = self
        while cause is not None and not isinstance(cause, ConnectionRefusedError):
            cause = cause.__cause__ or cause.__context__
        return cause is not None
