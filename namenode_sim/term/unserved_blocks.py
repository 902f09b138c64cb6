"""Keeps a NameNode without DataNodes from becoming active where clients have files to read."""

from typing import Final

import structlog

from namenode_sim.namespace.blocks import BlockPresence
from namenode_sim.namespace.namespace import Namespace

log = structlog.get_logger()

REFUSAL: Final = (
    "files of this namespace have content in blocks, and nnha's NameNode serves no blocks yet: "
    "clients could read no file. Keep one of Hadoop's NameNodes active, or accept that with "
    "nnha.namenode.active-without-blocks=true"
)


class UnservedBlocks:
    """What a namespace has that this NameNode cannot serve; ``accepted`` by its operator or not."""

    def __init__(self, namespace: Namespace, *, accepted: bool) -> None:
        self._presence = BlockPresence(namespace)
        self._accepted = accepted

    @property
    def any(self) -> bool:
        """Do files have content here?"""
        return self._presence.any()

    def warn(self, namenode: str) -> None:
        """Tell it in the log of the start, accepted or not."""
        if self.any:
            log.warning("namenode.blocks_not_served", namenode=namenode, why=REFUSAL)

    def refusal(self) -> str | None:
        """Why it shall not become active; None where it may."""
        return None if self._accepted or not self.any else REFUSAL
