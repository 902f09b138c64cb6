"""The errors of a call: a refusal, no answer, or bytes that cannot be decoded.

RemoteFault             the peer answered, with an error; it names a Java class
RpcError
├── ConnectFailed       no connection; nothing was sent
│   └── NoProof         we have nothing that proves who we are
├── ConnectionLost      it broke (or was closed); whether the call was carried out is unknown
├── DeadlineExceeded    no answer in time; whether the call was carried out is unknown
└── MalformedFrame      the peer's bytes are not Hadoop RPC, or break a limit
"""


class RemoteFault(Exception):
    """An error that travels in an answer.

    A handler raises it to send an ERROR answer; a client raises it when it gets one.

    Attributes:
        java_class: the exception's name as Java knows it (see ``ha.rpc.java_names``).
        message: what the peer said; from a Java peer it ends in a stack trace.
        fatal: the server closes the connection after this answer.
    """

    def __init__(self, java_class: str, message: str, fatal: bool = False) -> None:  # noqa: FBT001, FBT002 - the shape of the answer on the wire
        super().__init__(java_class, message, fatal)
        self.java_class = java_class
        self.message = message
        self.fatal = fatal

    def __str__(self) -> str:
        return f"{self.java_class}: {self.reason}"

    @property
    def reason(self) -> str:
        """The message without the stack trace that a Java server appends."""
        return self.message.partition("\n\tat ")[0]


class RpcError(Exception):
    """No answer was had.  The kinds differ in what is known about the call."""


class ConnectFailed(RpcError):
    """The peer could not be reached; the call was not sent."""


class NoProof(ConnectFailed):
    """We have nothing that proves who we are, and would have nothing at another server."""


class ConnectionLost(RpcError):
    """The connection is gone; whether a pending call was carried out is unknown."""


class DeadlineExceeded(RpcError):
    """The answer did not come in time; whether the call was carried out is unknown."""


class MalformedFrame(RpcError):
    """Bytes that are not Hadoop RPC, or a frame beyond a limit."""
