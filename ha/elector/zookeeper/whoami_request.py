"""ZooKeeper's request whoAmI, which kazoo does not have (ZOOKEEPER-3969, since 3.7)."""

import struct
from typing import ClassVar

from ha.record import dataclass

_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """The request, with the attributes that kazoo expects of its requests."""

    type: ClassVar[int] = 107

    @classmethod
    def serialize(cls) -> bytes:
        """Return the body, which is empty."""
        return b""

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> tuple[str, ...]:
        """Return the identities as ``scheme:name``, sorted, without those of the scheme ``ip``."""
        (count,) = _LENGTH.unpack_from(data, offset)
        offset += _LENGTH.size
        found = []
        for _ in range(max(count, 0)):
            scheme, offset = _text(data, offset)
            name, offset = _text(data, offset)
            if scheme != "ip":
                found.append(f"{scheme}:{name}")
        return tuple(sorted(found))


def _text(data: bytes, offset: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, offset)
    offset += _LENGTH.size
    end = offset + max(length, 0)
    return bytes(data[offset:end]).decode("utf-8", "replace"), end
