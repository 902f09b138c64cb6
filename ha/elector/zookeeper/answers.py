"""The value of a ZooKeeper answer, or the error that informs an operator why there is none.

Pure.
"""

from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import Done, Outcome, Refused, T_co, Unknown


def value_of(outcome: Outcome[T_co], request: str) -> T_co:
    """Return the answer to a request; ``request`` completes "ZooKeeper refused to ...".

    Raises:
        ZooKeeperRefused: it had no effect.
        ZooKeeperUnavailable: whether it had an effect is unknown.
    """
    match outcome:
        case Done(value=value):
            return value
        case Refused(why=why, text=text):
            raise ZooKeeperRefused(f"ZooKeeper refused to {request}: {why} ({text})")
        case Unknown(why=doubt):
            raise ZooKeeperUnavailable(f"no answer to: {request} ({doubt}); it may have been done")
