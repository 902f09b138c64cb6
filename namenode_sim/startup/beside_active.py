"""What cannot be undone is not done where a NameNode is active, or may be."""

from typing import Final

from ha.daemon.process import ExitWith
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.transfer.peers import Sight, look_for_active

ASK_SECONDS: Final = 3.0


async def refuse_active(
    place: NameNodeIdentity, *, code: int, because: str, erases: bool = True
) -> None:
    """Refuse while a NameNode is active; and where something is erased, if that is not known.

    It may have our own id and address, and other name directories than ours.  ``because`` ends the
    sentence on an active one.  Raise ExitWith with ``code``.
    """
    nameservice = place.address.nameservice
    sight = await look_for_active((*place.peers, place.address), deadline_seconds=ASK_SECONDS)
    if sight.active:
        raise ExitWith(code, f"a NameNode of {nameservice} is active, {because}")
    if sight.unknown and erases:
        raise ExitWith(code, _unknown(nameservice, sight))


def _unknown(nameservice: str, sight: Sight) -> str:
    return (
        f"whether a NameNode of {nameservice} is active is not known: {', '.join(sight.unknown)}. "
        "Nothing was changed, and --force does not override this. → stop it, or make sure that its "
        "host is off and leave it out for this command: "
        f"-D dfs.ha.namenodes.{nameservice}=ID,... with the ids of the others"
    )
