"""What clients do to a real Hadoop cluster, so that its edit log has every kind of edit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tests.interop.hadoop_server import Hadoop, JavaObject

Step: TypeAlias = "Callable[[Client], None]"

BLOCK = 4096
BUFFER = 4096
REPLICATION = 3
RENAME_OPTION = "fs.Options$Rename"


@dataclass(frozen=True, slots=True)
class Client:
    """A DistributedFileSystem, with short ways to use it."""

    java: Hadoop
    cluster: JavaObject
    fs: JavaObject

    def paths(self, *paths: str) -> JavaObject:
        return self.java.array(self.java.hadoop.fs.Path, [self.java.path(path) for path in paths])

    def write(
        self, path: str, size: int, *, overwrite: bool = False, block_size: int = BLOCK
    ) -> None:
        """Create a file of ``size`` bytes."""
        stream = self.create(path, overwrite=overwrite, block_size=block_size)
        stream.write(bytes(index % 251 for index in range(size)))
        stream.close()

    def create(self, path: str, *, overwrite: bool = False, block_size: int = BLOCK) -> JavaObject:
        """Return an output stream to a new file."""
        return self.fs.create(self.java.path(path), overwrite, BUFFER, REPLICATION, block_size)

    def begin(self, path: str, size: int, *, block_size: int = BLOCK) -> JavaObject:
        """Create a file, write to it, make the bytes visible, and leave it open."""
        stream = self.create(path, block_size=block_size)
        stream.write(bytes(size))
        stream.hflush()
        return stream

    def mkdirs(self, path: str, mode: int = 0o755) -> None:
        """``mkdir -p``."""
        permission = self.java.hadoop.fs.permission.FsPermission
        assert self.fs.mkdirs(self.java.path(path), permission.createImmutable(mode))

    def acl(self, spec: str) -> JavaObject:
        """Return an ACL as ``setfacl`` takes it."""
        return self.java.hadoop.fs.permission.AclEntry.parseAclSpec(spec, True)

    def rename(self, source: str, target: str, *options: str) -> None:
        """Rename with options; with none it is the old one, which answers false."""
        ends = self.java.path(source), self.java.path(target)
        if not options:
            assert self.fs.rename(*ends)
            return
        kind = self.java.gateway.jvm.java.lang.Class.forName(f"org.apache.hadoop.{RENAME_OPTION}")
        chosen = self.java.gateway.jvm.java.lang.reflect.Array.newInstance(kind, len(options))
        for index, option in enumerate(options):
            chosen[index] = self.java.enum(RENAME_OPTION, option)
        self.fs.rename(*ends, chosen)


def files(client: Client) -> None:
    """Files of no, one and several blocks; overwritten, left open, synced, deleted."""
    client.mkdirs("/files/é/日本/😀")
    client.mkdirs("/sticky", 0o1777)
    client.write("/files/empty", 0)
    client.write("/files/one", 100)
    client.write("/files/several", 3 * BLOCK + 7)
    client.write("/files/exact", 2 * BLOCK)
    client.write("/files/é/日本/😀/leaf", 10)
    client.write("/files/replaced", 10)
    client.write("/files/replaced", BLOCK + 1, overwrite=True)
    client.write("/files/gone/away", 10)
    client.write("/files/gone/too", 10)
    assert client.fs.delete(client.java.path("/files/gone"), True)
    client.begin("/files/open", BLOCK + 9)
    client.begin("/files/open-and-empty", 0)
    client.begin("/files/open-and-deleted", 9)
    assert client.fs.delete(client.java.path("/files/open-and-deleted"), False)


def appends(client: Client) -> None:
    """Append inside a block, at its end, to a new block; and truncate likewise."""
    for name, size in {"short": 100, "exact": BLOCK, "left-open": 10}.items():
        client.write(f"/appends/{name}", size)
        stream = client.fs.append(client.java.path(f"/appends/{name}"))
        stream.write(bytes(BLOCK))
        if name == "left-open":
            stream.hflush()
        else:
            stream.close()
    client.write("/appends/new-block", 100)
    flags = client.java.gateway.jvm.java.util.EnumSet.of(
        client.java.enum("fs.CreateFlag", "APPEND"), client.java.enum("fs.CreateFlag", "NEW_BLOCK")
    )
    stream = client.fs.append(client.java.path("/appends/new-block"), flags, BLOCK, None)
    stream.write(bytes(20))
    stream.close()
    for name, new_length in {"to-boundary": BLOCK, "to-nothing": 0, "inside": BLOCK + 1000}.items():
        client.write(f"/truncated/{name}", 2 * BLOCK + 5)
        client.fs.truncate(client.java.path(f"/truncated/{name}"), new_length)


def syncs(client: Client) -> None:
    """Update a length by hsync, lose a pipeline's DataNode, recover a lease."""
    stream = client.begin("/syncs/length", 100)
    update = client.java.enum("hdfs.client.HdfsDataOutputStream$SyncFlag", "UPDATE_LENGTH")
    stream.hsync(client.java.gateway.jvm.java.util.EnumSet.of(update))
    stream.write(bytes(50))
    stream.close()
    client.begin("/syncs/lease", 100)
    lease = client.java.path("/syncs/lease")
    other = client.java.file_system_of(client.cluster.getNameNode())
    other.recoverLease(lease)
    client.java.wait_until(lambda: other.isFileClosed(lease), "the lease to be recovered")


def concats(client: Client) -> None:
    """Files joined together."""
    for name, size in {"a": 2 * BLOCK, "b": BLOCK, "c": 100}.items():
        client.write(f"/concat/{name}", size)
    client.fs.concat(client.java.path("/concat/a"), client.paths("/concat/b", "/concat/c"))


def renames(client: Client) -> None:
    """Both kinds of rename, over files and empty directories, and of files being written."""
    client.mkdirs("/renames/into/empty")
    client.mkdirs("/renames/dir/below/deep")
    for name in ("f", "g", "h"):
        client.write(f"/renames/{name}", 10)
    client.rename("/renames/f", "/renames/f2")
    client.rename("/renames/f2", "/renames/into")
    client.rename("/renames/g", "/renames/h", "OVERWRITE")
    client.rename("/renames/dir", "/renames/into/empty", "OVERWRITE")
    client.rename("/renames/h", "/renames/trashed", "NONE", "TO_TRASH")
    client.begin("/renames/into/empty/below/writing", 100)
    client.rename("/renames/into/empty/below", "/renames/moved")
    assert not client.fs.rename(client.java.path("/renames/nothing"), client.java.path("/x"))


def attributes(client: Client) -> None:
    """Modes, owners, times, replication, ACLs, extended attributes, policies and quotas."""
    fs, path = client.fs, client.java.path
    client.mkdirs("/attributes/d")
    client.write("/attributes/f", BLOCK)
    permission = client.java.hadoop.fs.permission.FsPermission
    fs.setPermission(path("/attributes/d"), permission.createImmutable(0o1750))
    fs.setPermission(path("/attributes/f"), permission.createImmutable(0o604))
    fs.setOwner(path("/attributes/d"), "alice", "staff")
    fs.setOwner(path("/attributes/f"), "bob", None)
    fs.setOwner(path("/attributes/f"), None, "users")
    fs.setTimes(path("/attributes/f"), 1234, 5678)
    fs.setTimes(path("/attributes/d"), 4321, -1)
    fs.setTimes(path("/attributes/f"), -1, 99)
    fs.setReplication(path("/attributes/f"), 2)
    fs.setXAttr(path("/attributes/f"), "user.one", b"1")
    fs.setXAttr(path("/attributes/f"), "user.two", b"")
    fs.setXAttr(path("/attributes/f"), "user.one", b"\x00\xff")
    fs.setXAttr(path("/attributes/d"), "trusted.é", "ü".encode())
    fs.setXAttr(path("/attributes/d"), "user.gone", b"x")
    fs.removeXAttr(path("/attributes/d"), "user.gone")
    fs.setXAttr(path("/attributes/f"), "security.hdfs.unreadable.by.superuser", None)
    fs.setStoragePolicy(path("/attributes/d"), "COLD")
    fs.setStoragePolicy(path("/attributes/f"), "ALL_SSD")
    client.mkdirs("/attributes/unset")
    fs.setStoragePolicy(path("/attributes/unset"), "WARM")
    fs.unsetStoragePolicy(path("/attributes/unset"))
    _quotas(client)
    _acls(client)
    client.write("/attributes/read", 10)
    fs.open(path("/attributes/read")).close()  # its access time


def _quotas(client: Client) -> None:
    path = client.java.path
    client.mkdirs("/quotas/d")
    client.mkdirs("/quotas/cleared")
    client.fs.setQuota(path("/quotas/d"), 100, 1 << 40)
    client.fs.setQuota(path("/quotas/d"), 50, 2**63 - 1)
    client.fs.setQuotaByStorageType(path("/quotas/d"), client.java.enum("fs.StorageType", "SSD"), 9)
    for kind in ("DISK", "ARCHIVE", "NVDIMM"):
        quota_for = client.java.enum("fs.StorageType", kind)
        client.fs.setQuotaByStorageType(path("/quotas/d"), quota_for, 1 << 30)
    client.fs.setQuotaByStorageType(
        path("/quotas/d"), client.java.enum("fs.StorageType", "ARCHIVE"), -1
    )
    client.fs.setQuota(path("/quotas/cleared"), 7, 7 * BLOCK)
    client.fs.setQuota(path("/quotas/cleared"), -1, -1)
    client.fs.setQuota(path("/"), 10**6, 2**63 - 1)


def _acls(client: Client) -> None:
    fs, path = client.fs, client.java.path
    client.mkdirs("/acls/d")
    client.write("/acls/f", 10)
    client.write("/acls/minimal", 10)
    fs.setAcl(path("/acls/f"), client.acl("user::rw-,user:alice:r-x,group::r--,other::---"))
    fs.modifyAclEntries(path("/acls/f"), client.acl("group:staff:rwx,mask::r--"))
    fs.setPermission(
        path("/acls/f"), client.java.hadoop.fs.permission.FsPermission.createImmutable(0o654)
    )
    fs.modifyAclEntries(path("/acls/d"), client.acl("default:user:bob:rwx,default:group::r-x"))
    client.mkdirs("/acls/d/inherits/further")
    client.write("/acls/d/inherits/file", 10)
    fs.setAcl(path("/acls/minimal"), client.acl("user::rw-,user:x:rwx,group::rw-,other::r--"))
    fs.removeAcl(path("/acls/minimal"))
    client.mkdirs("/acls/no-default")
    fs.modifyAclEntries(path("/acls/no-default"), client.acl("default:user:bob:rwx,user:u:r--"))
    fs.removeDefaultAcl(path("/acls/no-default"))


STEPS: tuple[Step, ...] = (files, appends, syncs, concats, renames, attributes)
