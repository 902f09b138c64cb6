"""What the map of blocks is made of; ``BlockState`` owns it and keeps its parts in agreement.

See docs/reference/blocks.md#the-map.
"""

from namenode_sim.blocks.block_ids import BlockIds
from namenode_sim.blocks.columns import BlockColumns
from namenode_sim.blocks.constructions import Constructions
from namenode_sim.blocks.corrupt_marks import CorruptMarks
from namenode_sim.blocks.index import BlockIndex
from namenode_sim.blocks.invalidations import Invalidations
from namenode_sim.blocks.needed import Needed
from namenode_sim.blocks.pending_deletions import PendingDeletions
from namenode_sim.blocks.postponed_reports import PostponedReports
from namenode_sim.blocks.recheck_queue import RecheckQueue
from namenode_sim.blocks.replicas import Replicas
from namenode_sim.blocks.safe_counts import SafeCounts
from namenode_sim.blocks.storages import Storages


class Parts:
    """Each part owns its own data; several have something to say about the same block."""

    __slots__ = (
        "columns", "constructions", "corrupt", "counts", "ids", "index", "invalidations",
        "needed", "pending_deletions", "postponed_reports", "rechecks", "replicas", "storages",
    )  # fmt: skip

    def __init__(self, minimum: int, safe_minimum: int | None, postponed_limit: int) -> None:
        self.columns = BlockColumns()
        self.index = BlockIndex()
        self.replicas = Replicas(self.columns)
        self.storages = Storages()
        self.constructions = Constructions()
        self.corrupt = CorruptMarks(self.columns)
        self.pending_deletions = PendingDeletions()
        self.invalidations = Invalidations()
        self.needed = Needed(self.columns)
        self.rechecks = RecheckQueue()
        self.postponed_reports = PostponedReports(postponed_limit)
        self.ids = BlockIds()
        self.counts = SafeCounts(minimum, safe_minimum)
