"""Edges with inode ids at both ends: children by reference are looked up.  Pure."""

from spark.tables.entry_columns import decode_entries
from spark.tables.lanes import Ints
from spark.tables.message_stream import BadMessage, Chunk


def edges_of(chunk: Chunk, references: Ints) -> tuple[Ints, Ints]:
    """Return the parents and the children in a chunk of INODE_DIR messages.

    Args:
        chunk: the messages.
        references: the inodes of INODE_REFERENCE by number.

    Raises:
        BadMessage: if one is malformed, or names a reference that is not there.
    """
    found = decode_entries(chunk.data, chunk.starts, chunk.ends)
    moved = found.by_reference
    if len(moved):
        numbers = found.child[moved]
        if int(numbers.max()) >= len(references):
            what = f"reference {numbers.max()} is not there, only {len(references)} are"
            raise BadMessage(int(chunk.starts[0]), what)
        found.child[moved] = references[numbers]
    return found.parent, found.child
