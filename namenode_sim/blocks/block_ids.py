"""The ids and generation stamps of blocks that this NameNode has learnt of from edits.

See docs/reference/blocks.md#the-map.
"""

from namenode_sim.namespace.state import FIRST_BLOCK_ID, FIRST_GENERATION_STAMP, Counters


class BlockIds:
    """The highest stamp and id that edits have shown in a block, and the highest given out.

    Stamps below ``_legacy_limit`` are of Hadoop 1: they were given out up to ``_legacy_stamp``.
    """

    def __init__(self) -> None:
        self.seen_stamp = self.given_stamp = FIRST_GENERATION_STAMP
        self.seen_id = self.given_id = FIRST_BLOCK_ID
        self._legacy_stamp = FIRST_GENERATION_STAMP
        self._legacy_limit = 0

    def load_legacy(self, counters: Counters) -> None:
        """Note which stamps are of Hadoop 1; the blocks of the image are shown after it."""
        self._legacy_stamp = counters.generation_stamp_v1
        self._legacy_limit = counters.generation_stamp_v1_limit

    def load_given(self, counters: Counters) -> None:
        """Note what was given out, once all blocks of the image have been shown."""
        self.given_stamp = max(counters.generation_stamp_v2, self.seen_stamp)
        self.given_id = max(counters.last_block_id, self.seen_id)

    def show(self, block_id: int, stamp: int) -> None:
        if stamp >= self._legacy_limit:
            self.seen_stamp = max(self.seen_stamp, stamp)
        self.seen_id = max(self.seen_id, block_id)

    def give_stamp(self, stamp: int, *, active: bool) -> None:
        """Note that a stamp was given out; the edits of an active are all there are."""
        self.given_stamp = max(self.given_stamp, stamp)
        if active:
            self.seen_stamp = self.given_stamp

    def give_id(self, block_id: int, *, active: bool) -> None:
        """Note that an id was given out; the edits of an active are all there are."""
        self.given_id = max(self.given_id, block_id)
        if active:
            self.seen_id = self.given_id

    def activate(self) -> None:
        """Take all that was given out for seen: no other NameNode writes edits any more."""
        self.seen_stamp = max(self.seen_stamp, self.given_stamp)
        self.seen_id = max(self.seen_id, self.given_id)

    def has_new_stamp(self, stamp: int) -> bool:
        """Return whether a stamp is newer than those that edits have shown."""
        if stamp < self._legacy_limit:
            return stamp > self._legacy_stamp
        return stamp > self.seen_stamp

    def has_new_id(self, block_id: int, stamp: int) -> bool:
        """Return whether a block's id is newer than those shown, and not one of Hadoop 1.

        A stamp may have been given out before an edit shows the block that it is for.
        """
        return stamp >= self._legacy_limit and block_id > self.seen_id
