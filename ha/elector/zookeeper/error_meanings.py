"""What each error of kazoo means for its request: it was refused, or its outcome is unknown.

Pure.
"""

from collections.abc import Mapping

from ha.elector.zookeeper.outcome import Doubt, Refusal

_MEANINGS: Mapping[str, Refusal | Doubt] = {
    "NodeExistsError": Refusal.NODE_EXISTS,
    "NoNodeError": Refusal.NO_NODE,
    "BadVersionError": Refusal.BAD_VERSION,
    "NoAuthError": Refusal.NO_RIGHTS,
    "AuthFailedError": Refusal.NO_RIGHTS,
    "InvalidACLError": Refusal.NO_RIGHTS,
    "NotEmptyError": Refusal.NOT_EMPTY,
    "SessionExpiredError": Refusal.EXPIRED,
    "ConnectionLoss": Doubt.LOST,
    "ConnectionClosedError": Doubt.LOST,
    "OperationTimeoutError": Doubt.LOST,
    # Troubles of a server's that pass, while the connection may stay.  They are no reason to give
    # up, and none to believe that nothing was done: only a new session settles it.
    "SessionMovedError": Doubt.LATE,
    "RequestTimeoutError": Doubt.LATE,
    "ThrottledOpError": Doubt.LATE,
}


def meaning_of(error: str) -> Refusal | Doubt:
    """Look up the error's class; an unknown one is a refusal that no retry changes."""
    return _MEANINGS.get(error, Refusal.OTHER)
