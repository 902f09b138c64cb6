"""Namespaces and real files that the image tests share."""

import io
from pathlib import Path

from journal.frame import HEADER_BYTES, read_header
from journal.model import TxId
from namenode_sim.edits import ops, values
from namenode_sim.edits.codec import decode_all
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace.namespace import Namespace
from tests import TESTDATA
from tests.needs import FILES_OF_HADOOP
from tests.worlds.files import info


def real(name: str) -> Path:
    """Return a file written by Hadoop; skip the test where it is not at hand."""
    path = TESTDATA / name
    if not path.exists():
        FILES_OF_HADOOP.skip(f"{path} is not there")
    return path


def replay(namespace: Namespace, path: Path) -> Namespace:
    data = path.read_bytes()
    for txid, op in decode_all(data, read_header(data), start=HEADER_BYTES):
        namespace.apply(txid, op)
    return namespace


def saved(namespace: Namespace, layout: int = -65, codec: str = "") -> bytes:
    file = io.BytesIO()
    write_namespace(namespace, file, info(layout), codec=codec)
    return file.getvalue()


KEY = values.DelegationKey(1, 99, b"secret")
TOKEN = values.DelegationTokenIdentifier("o", "r", "", 1, 2, 3, 1)
PERMISSION = values.Permission("alice", "users", 0o640)
A_NAMED_USER = values.AclEntry(values.AclScope.ACCESS, values.AclType.USER, "bob", 6)

EDITS: tuple[ops.Op, ...] = (
    ops.StartLogSegment(),
    ops.Mkdir(16386, "/d", 5, 5, PERMISSION),
    ops.Mkdir(16387, "/d/é", 5, 5, values.Permission("carol", "", 0o1777)),
    ops.Add(16388, "/d/open", 3, 6, 6, 128, (), PERMISSION, (), (), "client", "host"),
    ops.AllocateBlockId(2**30 + 1),
    ops.SetGenstampV2(1001),
    ops.AddBlock("/d/open", None, values.Block(2**30 + 1, 0, 1001)),
    ops.Add(16389, "/d/closed", 2, 7, 7, 256, (), PERMISSION, (), (), "client", "host"),
    ops.AddBlock("/d/closed", None, values.Block(2**30 + 2, 0, 1002)),
    ops.AddBlock("/d/closed", values.Block(2**30 + 2, 256, 1002), values.Block(2**30 + 3, 0, 1003)),
    ops.Close(0, "/d/closed", 2, 8, 7, 256, (values.Block(2**30 + 2, 256, 1002),
              values.Block(2**30 + 3, 9, 1003)), PERMISSION),
    ops.SetAcl("/d/closed", (
        values.AclEntry(values.AclScope.ACCESS, values.AclType.USER, None, 6),
        A_NAMED_USER,
        values.AclEntry(values.AclScope.ACCESS, values.AclType.GROUP, None, 4),
        values.AclEntry(values.AclScope.ACCESS, values.AclType.GROUP, "bob", 4),
        values.AclEntry(values.AclScope.ACCESS, values.AclType.MASK, None, 6),
        values.AclEntry(values.AclScope.ACCESS, values.AclType.OTHER, None, 0),
    )),
    ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.RAW, "bob", b"1"),
                        values.XAttr(values.XAttrNamespace.USER, "empty", b""))),
    ops.SetQuota("/d", 100, 2**40),
    ops.SetQuotaByStorageType("/d", values.StorageType.SSD, 2**30),
    ops.SetStoragePolicy("/d/closed", 12),
    ops.Symlink(16390, "/link", "/d/closed", 9, 9, PERMISSION),
    ops.UpdateMasterKey(KEY),
    ops.GetDelegationToken(TOKEN, 77),
    ops.AddCachePool(values.CachePool("pool", "o", "g", 0o750, 5, 6, 2)),
    ops.AddCacheDirective(values.CacheDirective(1, "/d", 2, "pool", 88)),
    ops.RollingUpgradeStart(123),
    ops.AllowSnapshot("/d/é"),
)  # fmt: skip
"""Something of everything that an image of any layout can hold."""


def rich_namespace() -> Namespace:
    """Return a namespace with something of everything."""
    namespace = Namespace.empty("hdfs")
    for txid, op in enumerate(EDITS, start=1):
        namespace.apply(TxId(txid), op)
    return namespace
