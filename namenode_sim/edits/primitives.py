"""Numbers, strings and lists as Hadoop's edit log writes them.

Each ``read_*`` takes the bytes of one frame and a position, and returns the value and the position
behind it.  What the bytes cannot hold raises ValueError, IndexError or struct.error; the codec
turns these into EditsError.  A frame is at most 50 MiB and no reader allocates more than the
frame holds, so a false length costs nothing.

See docs/reference/formats.md#primitive-types.
"""

from functools import lru_cache
from itertools import starmap
from struct import Struct
from typing import Final

from hadoop.writable import read_text, read_vint, read_vlong, text, vint, vlong
from namenode_sim.edits.values import NO_RPC_IDS, Block, Permission, RpcIds

MAX_STRING_BYTES: Final = 0xFFFF

I16: Final = Struct(">h")
I32: Final = Struct(">i")
I64: Final = Struct(">q")
I64I64: Final = Struct(">qq")
_U16 = Struct(">H")
_BLOCK = Struct(">qqq")
_RPC_IDS = Struct(">H16si")
_NO_RPC_IDS_BYTES = b"\x00\x00\xff\xff\xff\xfe"
_UUID_BYTES = 16


def read_i32(data: bytes, pos: int) -> tuple[int, int]:
    return I32.unpack_from(data, pos)[0], pos + 4


def read_i64(data: bytes, pos: int) -> tuple[int, int]:
    return I64.unpack_from(data, pos)[0], pos + 8


def read_string(data: bytes, pos: int) -> tuple[str, int]:
    """Read ``str16``: a length in bytes and modified UTF-8."""
    start = pos + 2
    end = start + (data[pos] << 8 | data[pos + 1])
    if end > len(data):
        raise ValueError(f"a string of {end - start} bytes, but {len(data) - start} are left")
    try:
        return data[start:end].decode(), end
    except UnicodeDecodeError:
        return _decode_surrogates(data[start:end]), end


def _decode_surrogates(raw: bytes) -> str:
    """Put surrogate pairs together again: Java wrote each UTF-16 code unit on its own."""
    units = raw.decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
    return units.decode("utf-16-be", "surrogatepass")


def string(text: str) -> bytes:
    """Encode ``str16``.

    Raises:
        ValueError: if the text is too long.  Hadoop cuts it and says nothing.
    """
    raw = text.encode("utf-8", "surrogatepass")
    if not text.isascii() and max(raw) >= 0xF0:
        raw = _encode_surrogates(text)
    if len(raw) > MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(raw)} bytes; at most {MAX_STRING_BYTES} fit")
    return _U16.pack(len(raw)) + raw


def _encode_surrogates(text: str) -> bytes:
    units = text.encode("utf-16-be", "surrogatepass")
    apart = "".join(chr(unit) for (unit,) in _U16.iter_unpack(units))
    return apart.encode("utf-8", "surrogatepass")


def read_permission(data: bytes, pos: int) -> tuple[Permission, int]:
    """Read ``perm``: owner, group and mode."""
    user_size = data[pos]
    group_at = pos + 1 + user_size
    if user_size > 127 or data[group_at] > 127:
        return _read_long_permission(data, pos)
    end = group_at + 3 + data[group_at]
    return _permission(data[pos:end]), end


@lru_cache(maxsize=4096)
def _permission(raw: bytes) -> Permission:
    """Return one shared object for equal bytes: the same few owners and modes come repeatedly."""
    return _read_long_permission(raw, 0)[0]


def _read_long_permission(data: bytes, pos: int) -> tuple[Permission, int]:
    user, pos = read_text(data, pos)
    group, pos = read_text(data, pos)
    return Permission(user, group, _U16.unpack_from(data, pos)[0]), pos + 2


@lru_cache(maxsize=4096)
def permission(value: Permission) -> bytes:
    """Encode ``perm``: owner, group and mode."""
    return text(value.user) + text(value.group) + _U16.pack(value.mode)


def read_mode(data: bytes, pos: int) -> tuple[int, int]:
    """Read permission bits, kept as the 16 bits they are."""
    return _U16.unpack_from(data, pos)[0], pos + 2


def mode(bits: int) -> bytes:
    return _U16.pack(bits)


def read_blocks(data: bytes, pos: int) -> tuple[tuple[Block, ...], int]:
    """Read ``blocks``: a count and three 64-bit numbers each."""
    (count,) = I32.unpack_from(data, pos)
    start = pos + 4
    end = start + count * _BLOCK.size
    if count < 0 or end > len(data):
        raise ValueError(f"{count} blocks, but {len(data) - start} bytes are left")
    return tuple(starmap(Block, _BLOCK.iter_unpack(data[start:end]))), end


def blocks(found: tuple[Block, ...]) -> bytes:
    """Encode ``blocks``: a count and three 64-bit numbers each."""
    pack = _BLOCK.pack
    parts = [pack(b.block_id, b.num_bytes, b.generation_stamp) for b in found]
    return I32.pack(len(parts)) + b"".join(parts)


def read_compact_blocks(data: bytes, pos: int) -> tuple[tuple[Block, ...], int]:
    """Read ``cblocks``: sizes and stamps as differences from the block before."""
    count, pos = read_vint(data, pos)
    # A block takes at least ten bytes: its id and two one-byte differences.
    if not 0 <= count * 10 <= len(data) - pos:
        raise ValueError(f"{count} blocks, but {len(data) - pos} bytes are left")
    found = []
    size = stamp = 0
    for _ in range(count):
        (block_id,) = I64.unpack_from(data, pos)
        more, pos = read_vlong(data, pos + 8)
        size = _wrap(size + more)
        more, pos = read_vlong(data, pos)
        stamp = _wrap(stamp + more)
        found.append(Block(block_id, size, stamp))
    return tuple(found), pos


def _wrap(number: int) -> int:
    """Return a number after Java's long arithmetic: what leaves 64 bits wraps around."""
    return (number + 0x8000000000000000) % 0x10000000000000000 - 0x8000000000000000


def compact_blocks(found: tuple[Block, ...]) -> bytes:
    """Encode ``cblocks``: sizes and stamps as differences from the block before."""
    parts = [vint(len(found))]
    size = stamp = 0
    for block in found:
        parts.append(I64.pack(block.block_id))
        parts.append(vlong(_wrap(block.num_bytes - size)))
        parts.append(vlong(_wrap(block.generation_stamp - stamp)))
        size, stamp = block.num_bytes, block.generation_stamp
    return b"".join(parts)


def read_rpc_ids(data: bytes, pos: int) -> tuple[RpcIds, int]:
    """Read ``R``: the client's UUID and its call, or none of both."""
    size = data[pos] << 8 | data[pos + 1]
    if size == _UUID_BYTES:
        _, client_id, call_id = _RPC_IDS.unpack_from(data, pos)
        return RpcIds(client_id, call_id), pos + 22
    end = pos + 6 + size
    if data[pos:end] == _NO_RPC_IDS_BYTES:
        return NO_RPC_IDS, end
    if end > len(data):
        raise ValueError(f"a client id of {size} bytes, but {len(data) - pos - 2} are left")
    return RpcIds(data[pos + 2 : end - 4], I32.unpack_from(data, end - 4)[0]), end


def rpc_ids(ids: RpcIds) -> bytes:
    """Encode ``R``: the client's UUID and its call, or none of both."""
    client_id = ids.client_id
    if len(client_id) == _UUID_BYTES:
        return _RPC_IDS.pack(_UUID_BYTES, client_id, ids.call_id)
    if len(client_id) > MAX_STRING_BYTES:
        raise ValueError(f"a client id of {len(client_id)} bytes")
    return _U16.pack(len(client_id)) + client_id + I32.pack(ids.call_id)
