"""The numbers of a file in one bytes object: as Python integers they would take four times as much.

The layout, all of it signed 64-bit numbers, the highest byte first:

* the head, 24 bytes: id, modification time, access time (milliseconds since 1970);
* 24 bytes for each block, in the order of the file: id, length in bytes, generation stamp.

What does not fit is refused with struct.error, as a Java long would not hold it either.
"""

from struct import Struct
from typing import Final

from namenode_sim.edits.values import Block

PACKED_HEAD: Final = Struct(">qqq")
"""Id, modification time and access time."""

PACKED_BLOCK: Final = Struct(">qqq")
"""Id, length and generation stamp of one block."""

HEAD_SIZE: Final = PACKED_HEAD.size

id_in: Final = Struct(">q").unpack_from
mtime_in: Final = Struct(">8xq").unpack_from
atime_in: Final = Struct(">16xq").unpack_from
pack_time: Final = Struct(">q").pack
pack_times: Final = Struct(">qq").pack


def pack_numbers(inode_id: int, mtime: int, atime: int, packed_blocks: bytes = b"") -> bytes:
    """Pack a file's numbers; the blocks as ``pack_blocks`` gives them."""
    return PACKED_HEAD.pack(inode_id, mtime, atime) + packed_blocks


def pack_blocks(blocks: tuple[Block, ...]) -> bytes:
    pack = PACKED_BLOCK.pack
    return b"".join([pack(b.block_id, b.num_bytes, b.generation_stamp) for b in blocks])
