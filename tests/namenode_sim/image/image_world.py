"""Namespaces and real files that the image tests share."""

import io
from pathlib import Path

from journal.frame import HEADER_BYTES, read_header
from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.values import (
    AclEntry,
    AclScope,
    AclType,
    Block,
    CacheDirective,
    CachePool,
    DelegationKey,
    DelegationTokenIdentifier,
    Permission,
    StorageType,
    XAttr,
    XAttrNamespace,
)
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace.namespace import Namespace
from tests import TESTDATA
from tests.needs import FILES_OF_HADOOP
from tests.worlds.files import info


def real(name: str) -> Path:
    """A file written by Hadoop; skips the test where it is not at hand."""
    path = TESTDATA / name
    if not path.exists():
        FILES_OF_HADOOP.skip(f"{path} is not there")
    return path


def replay(namespace: Namespace, path: Path) -> Namespace:
    """Apply all edits of a segment file."""
    data = path.read_bytes()
    for txid, op in decode_all(data, read_header(data), start=HEADER_BYTES):
        namespace.apply(txid, op)
    return namespace


def saved(namespace: Namespace, layout: int = -65, codec: str = "") -> bytes:
    """The bytes of an image."""
    file = io.BytesIO()
    write_namespace(namespace, file, info(layout), codec=codec)
    return file.getvalue()


KEY = DelegationKey(1, 99, b"secret")
TOKEN = DelegationTokenIdentifier("o", "r", "", 1, 2, 3, 1)
PERMISSION = Permission("alice", "users", 0o640)
A_NAMED_USER = AclEntry(AclScope.ACCESS, AclType.USER, "bob", 6)

EDITS: tuple[ops.Op, ...] = (
    ops.StartLogSegment(),
    ops.Mkdir(16386, "/d", 5, 5, PERMISSION),
    ops.Mkdir(16387, "/d/é", 5, 5, Permission("carol", "", 0o1777)),
    ops.Add(16388, "/d/open", 3, 6, 6, 128, (), PERMISSION, (), (), "client", "host"),
    ops.AllocateBlockId(2**30 + 1),
    ops.SetGenstampV2(1001),
    ops.AddBlock("/d/open", None, Block(2**30 + 1, 0, 1001)),
    ops.Add(16389, "/d/closed", 2, 7, 7, 256, (), PERMISSION, (), (), "client", "host"),
    ops.AddBlock("/d/closed", None, Block(2**30 + 2, 0, 1002)),
    ops.AddBlock("/d/closed", Block(2**30 + 2, 256, 1002), Block(2**30 + 3, 0, 1003)),
    ops.Close(0, "/d/closed", 2, 8, 7, 256, (Block(2**30 + 2, 256, 1002),
              Block(2**30 + 3, 9, 1003)), PERMISSION),
    ops.SetAcl("/d/closed", (
        AclEntry(AclScope.ACCESS, AclType.USER, None, 6),
        A_NAMED_USER,
        AclEntry(AclScope.ACCESS, AclType.GROUP, None, 4),
        AclEntry(AclScope.ACCESS, AclType.GROUP, "bob", 4),
        AclEntry(AclScope.ACCESS, AclType.MASK, None, 6),
        AclEntry(AclScope.ACCESS, AclType.OTHER, None, 0),
    )),
    ops.SetXAttr("/d", (XAttr(XAttrNamespace.RAW, "bob", b"1"),
                        XAttr(XAttrNamespace.USER, "empty", b""))),
    ops.SetQuota("/d", 100, 2**40),
    ops.SetQuotaByStorageType("/d", StorageType.SSD, 2**30),
    ops.SetStoragePolicy("/d/closed", 12),
    ops.Symlink(16390, "/link", "/d/closed", 9, 9, PERMISSION),
    ops.UpdateMasterKey(KEY),
    ops.GetDelegationToken(TOKEN, 77),
    ops.AddCachePool(CachePool("pool", "o", "g", 0o750, 5, 6, 2)),
    ops.AddCacheDirective(CacheDirective(1, "/d", 2, "pool", 88)),
    ops.RollingUpgradeStart(123),
    ops.AllowSnapshot("/d/é"),
)  # fmt: skip
"""Something of everything that an image of any layout can hold."""


def rich_namespace() -> Namespace:
    """A namespace with something of everything."""
    namespace = Namespace.empty("hdfs")
    for txid, op in enumerate(EDITS, start=1):
        namespace.apply(TxId(txid), op)
    return namespace
