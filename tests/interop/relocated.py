"""Puts ZooKeeper's classes where Hadoop's client jars look for them, as maven-shade does.

``hadoop-client-api`` names ZooKeeper's classes below ``org.apache.hadoop.shaded``, but no client
jar holds them there.  A class file names other classes, members and strings in the entries of one
table, its constant pool; renaming in that table renames everywhere.
"""

import struct
import zipfile
from pathlib import Path

from deploy.local.cluster.java import find_jars

JARS = ("zookeeper-3*.jar", "zookeeper-jute-*.jar")
MOVES = tuple(
    (name.encode(), f"org{dot}apache{dot}hadoop{dot}shaded{dot}{name}".encode())
    for dot, name in (("/", "org/apache/zookeeper"), (".", "org.apache.zookeeper"))
)

_UTF8 = 1
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4}
_SIZES |= {15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_TWO_SLOTS = (5, 6)  # longs and doubles count twice (JVM specification 4.4.5)
_POOL_AT = 10


def relocated_zookeeper(folder: Path) -> Path:
    target = folder / "shaded-zookeeper.jar"
    with zipfile.ZipFile(target, "w") as written:
        for pattern in JARS:
            (jar,) = find_jars().glob(pattern)
            with zipfile.ZipFile(jar) as read:
                for name in read.namelist():
                    if name.endswith(".class"):
                        written.writestr(_moved(name.encode()).decode(), _renamed(read.read(name)))
    return target


def _renamed(content: bytes) -> bytes:
    """Return a class file with the names in its constant pool changed."""
    (count,) = struct.unpack_from(">H", content, _POOL_AT - 2)
    out = bytearray(content[:_POOL_AT])
    at, entry = _POOL_AT, 1
    while entry < count:
        kind = content[at]
        if kind == _UTF8:
            (length,) = struct.unpack_from(">H", content, at + 1)
            text = _moved(content[at + 3 : at + 3 + length])
            out += bytes([kind]) + struct.pack(">H", len(text)) + text
            at += 3 + length
        else:
            out += content[at : at + 1 + _SIZES[kind]]
            at += 1 + _SIZES[kind]
        entry += 2 if kind in _TWO_SLOTS else 1
    return bytes(out + content[at:])


def _moved(text: bytes) -> bytes:
    for old, new in MOVES:
        text = text.replace(old, new)
    return text
