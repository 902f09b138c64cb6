"""The ways in which a server lets callers prove themselves, and their steps.  Pure."""

from collections.abc import Callable

from ha.record import dataclass
from ha.security.caller import Method
from ha.security.sasl.mechanism import Acceptor


@dataclass(frozen=True, slots=True)
class Way:
    """One way to prove who calls.  ``protocol`` and ``server_id`` are the service's principal.

    ``user_of`` returns the user, and the real user or an empty text, for what was proved; it raises
    SaslFailure where that is no user.  ``speaks_first``: the challenge goes out with the offer.
    ``in_thread``: a step may take long.
    """

    method: Method
    mechanism: str
    protocol: str
    server_id: str
    make: Callable[[], Acceptor]
    user_of: Callable[[str], tuple[str, str]]
    speaks_first: bool = False
    in_thread: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """The acceptor has to take the client's token; what it returns or raises is fed back."""

    way: Way
    acceptor: Acceptor
    token: bytes
