"""Which NameNode a DataNode obeys: the one whose claim to be active is the newest.

See docs/reference/datanode.md#claims.

Pure.
"""

from enum import Enum
from typing import Final, NewType

from ha.record import dataclass, replace

NameNodeId = NewType("NameNodeId", str)

_SEPARATOR: Final = " "
REMEDY: Final = (
    "it has no more transactions than one that was active before; if edits were lost, stop this "
    "DataNode, delete nnha/claim in its data directories, and start it (docs/disasters.md)"
)
"""What to do about a stale claim of a NameNode that is the active all the same."""


class Said(Enum):
    """What a NameNode says of itself in the answer to a heartbeat."""

    ACTIVE = "active"
    STANDBY = "standby"


@dataclass(frozen=True, slots=True)
class Claims:
    """The NameNode that is obeyed, and the highest txid with which any claimed to be active.

    ``remembered`` was obeyed last, by an earlier process or until it called itself a standby: its
    claim need not have grown since.  An active without its read lease calls itself standby, and no
    edit may come between that and the lease's renewal.
    """

    highest: int = -1
    obeyed: NameNodeId | None = None
    remembered: NameNodeId | None = None


class ClaimEffect(Enum):
    """What an answer means."""

    NOTHING_NEW = "nothing new"
    OBEYED = "obeyed from now on"
    OBEYED_NO_MORE = "obeyed no more"
    STALE = "a claim that is older than another's"


def hear(claims: Claims, who: NameNodeId, said: Said, txid: int) -> tuple[Claims, ClaimEffect]:
    """Take in an answer.  ``txid``: the last transaction that its sender has."""
    match said, claims.obeyed == who:
        case Said.ACTIVE, True:
            return replace(claims, highest=txid), ClaimEffect.NOTHING_NEW
        case Said.ACTIVE, False if _newer(claims, who, txid):
            return Claims(highest=txid, obeyed=who), ClaimEffect.OBEYED
        case Said.ACTIVE, False:
            return claims, ClaimEffect.STALE
        case Said.STANDBY, True:
            return replace(claims, obeyed=None, remembered=who), ClaimEffect.OBEYED_NO_MORE
        case _:
            return claims, ClaimEffect.NOTHING_NEW


def encode(claims: Claims) -> bytes:
    """Return the bytes in which the claim survives a restart."""
    return f"{claims.highest}{_SEPARATOR}{claims.obeyed or claims.remembered or ''}\n".encode()


def decode(data: bytes) -> Claims:
    """Return the claims that a restarted DataNode begins with; it obeys no NameNode yet.

    Raises:
        ValueError: if the data is not what ``encode`` writes.
    """
    highest, _, who = data.decode().rstrip("\n").partition(_SEPARATOR)
    return Claims(highest=int(highest), remembered=NameNodeId(who) if who else None)


def _newer(claims: Claims, who: NameNodeId, txid: int) -> bool:
    if claims.remembered == who:
        return txid >= claims.highest
    return txid > claims.highest
