"""What is still to be reported to one NameNode: the newest of each replica, until it answers.

See docs/reference/datanode.md#incremental-reports.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from datanode.model import StorageId
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement
from hadoop.blocks import BlockId

MAX_BLOCKS: Final = 10_000
"""Of one report; more wait for the next one."""


class IncrementalQueue:
    """The news for one NameNode, by storage and block."""

    def __init__(self) -> None:
        self._news: dict[StorageId, dict[BlockId, Announcement]] = {}
        self.urgent = False
        """Whether somebody waits for it: a block is whole."""

    def __len__(self) -> int:
        return sum(len(blocks) for blocks in self._news.values())

    def add(self, announcement: Announcement) -> None:
        """Queue news of a block, in place of older ones on all storages."""
        block_id = announcement.block.block_id
        for blocks in self._news.values():
            blocks.pop(block_id, None)
        self._news.setdefault(announcement.storage, {})[block_id] = announcement
        self.urgent = self.urgent or announcement.news is News.RECEIVED

    def take(
        self, is_here: Callable[[Announcement], bool] = lambda _: True
    ) -> Mapping[StorageId, Sequence[Announcement]]:
        """Return the next report; what does not fit stays in the queue.

        Announcements of replicas that came, but that ``is_here`` no longer finds, are dropped:
        their files are about to go, and a NameNode would take this for newer than the full report
        that lacks them.
        """
        for blocks in self._news.values():
            for one in list(blocks.values()):
                if one.news is not News.DELETED and not is_here(one):
                    del blocks[one.block.block_id]
        taken: dict[StorageId, list[Announcement]] = {}
        room = MAX_BLOCKS
        for storage, blocks in self._news.items():
            part = list(blocks.values())[:room]
            if part:
                taken[storage] = part
            for one in part:
                del blocks[one.block.block_id]
            room -= len(part)
        self.urgent = len(self) > 0
        return taken

    def put_back(self, taken: Mapping[StorageId, Sequence[Announcement]]) -> None:
        """Requeue an unanswered report, apart from what newer news has replaced since."""
        for storage, announcements in taken.items():
            for one in announcements:
                block_id = one.block.block_id
                if not any(block_id in blocks for blocks in self._news.values()):
                    self._news.setdefault(storage, {})[block_id] = one

    def clear(self) -> None:
        """Forget everything: a full report follows, or the NameNode does not want it."""
        self._news.clear()
        self.urgent = False
