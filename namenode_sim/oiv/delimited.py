"""An image as a table of paths, one line each (Hadoop's PBImageDelimitedTextWriter)."""

import struct
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

from ha.record import dataclass
from hadoop.longs import signed
from namenode_sim.client_protocol.words.permissions import symbolic
from namenode_sim.edits.values import XAttrNamespace
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import Strings
from namenode_sim.namespace.state import system_ec_policies
from namenode_sim.oiv.opened import OpenedImage
from namenode_sim.oiv.paths import PathFinder, Unlinked, join, parents_store, read_links, text
from namenode_sim.oiv.values import csv_field, utc_date

HEADER: Final = (
    "Path", "Replication", "ModificationTime", "AccessTime", "PreferredBlockSize", "BlocksCount",
    "FileSize", "NSQUOTA", "DSQUOTA", "Permission", "UserName", "GroupName",
)  # fmt: skip
_POLICY_XATTR: Final = (XAttrNamespace.SYSTEM, "hsm.block.storage.policy.id")
_EC_XATTR: Final = (XAttrNamespace.SYSTEM, "hdfs.erasurecoding.policy")
_SIZE = struct.Struct(">i")
_MINUTE_MILLIS: Final = 60_000
_CACHED_DATES: Final = 100_000
_NO_POLICY: Final = "-"

Numbers = tuple[int, int, int, int, int, int, int, int]
"""Replication, mtime, atime, block size, blocks, bytes, name quota, space quota."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table has in addition to Hadoop's twelve columns, and what stands between them."""

    delimiter: str = "\t"
    storage_policy: bool = False
    ec_policy: bool = False


def write_delimited(
    image: OpenedImage, out: TextIO, columns: Columns, temporary: Path | None = None
) -> int:
    """List every path; return how many inodes are left out, as no path leads to them.

    Times are local, to the minute, as Hadoop prints them.

    Args:
        image: what to list.
        out: where to.
        columns: what to print.
        temporary: a folder to be made for what would else be kept in memory.

    Raises:
        ImageError: if the image is malformed.
        OSError: if ``temporary`` exists or cannot be written.
    """
    with parents_store(temporary) as parents:
        finder = PathFinder(parents)
        for inode in image.inodes():
            if inode.HasField("directory"):
                finder.names[inode.id] = text(inode.name)
        for _ in read_links(image, finder):
            pass
        rows = _Rows(image.strings, columns)
        out.write(rows.header())
        unlinked = 0
        for inode in image.inodes():
            try:
                parent = finder.parent_path(inode.id)
            except Unlinked:
                unlinked += 1
                continue
            out.write(rows.row(join(parent, text(inode.name)), inode))
        return unlinked


class _Rows:
    """Lines of the table."""

    def __init__(self, strings: Strings, columns: Columns) -> None:
        self._strings = strings
        self._columns = columns
        self._dates: dict[int, str] = {}
        self._ec_names = {number: p.name for number, p in system_ec_policies().items()}

    def header(self) -> str:
        names = [*HEADER]
        if self._columns.storage_policy:
            names.append("StoragePolicyId")
        if self._columns.ec_policy:
            names.append("ErasureCodingPolicy")
        return self._columns.delimiter.join(names) + "\n"

    def row(self, path: str, inode: pb.INode) -> str:
        numbers, packed, has_acl = _numbers(inode)
        replication, mtime, atime, *rest = numbers
        user, group, mode = self._strings.owner(packed)
        kind = "d" if inode.HasField("directory") else "-"
        fields = [
            csv_field(path),
            str(replication),
            self._date(mtime),
            self._date(atime),
            *map(str, rest),
            f"{kind}{symbolic(mode)}{'+' if has_acl else ''}",
            csv_field(user),
            csv_field(group),
        ]
        if self._columns.storage_policy:
            fields.append(str(self._storage_policy(inode)))
        if self._columns.ec_policy:
            fields.append(self._ec_policy(inode))
        return self._columns.delimiter.join(fields) + "\n"

    def _date(self, millis: int) -> str:
        minute = millis // _MINUTE_MILLIS
        found = self._dates.get(minute)
        if found is None:
            if len(self._dates) > _CACHED_DATES:
                self._dates.clear()
            found = _local_date(minute * _MINUTE_MILLIS)
            self._dates[minute] = found
        return found

    def _storage_policy(self, inode: pb.INode) -> int:
        if inode.HasField("directory"):
            value = self._xattr(inode.directory, _POLICY_XATTR)
            return value[0] if value else 0
        return inode.file.storagePolicyID

    def _ec_policy(self, inode: pb.INode) -> str:
        if inode.HasField("directory"):
            value = self._xattr(inode.directory, _EC_XATTR)
            if value is None or len(value) < _SIZE.size:
                return _NO_POLICY
            (size,) = _SIZE.unpack_from(value)
            return value[_SIZE.size : _SIZE.size + max(0, size)].decode("utf-8", "replace")
        if inode.file.HasField("erasureCodingPolicyID"):
            return self._ec_names.get(inode.file.erasureCodingPolicyID, _NO_POLICY)
        return _NO_POLICY

    def _xattr(
        self, directory: pb.INodeDirectory, wanted: tuple[XAttrNamespace, str]
    ) -> bytes | None:
        for one in directory.xAttrs.xAttrs:
            found = self._strings.xattr(one.name, one.value)
            if (found.namespace, found.name) == wanted:
                return found.value
        return None


def _local_date(millis: int) -> str:
    try:
        return f"{datetime.fromtimestamp(millis // 1000).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):  # far beyond what a calendar of Python holds
        return utc_date(millis)[: -len(":00.000")].replace("T", " ")


def _numbers(inode: pb.INode) -> tuple[Numbers, int, bool]:
    """Return the numeric columns, the packed permission, and whether there is an ACL."""
    if inode.HasField("file"):
        file = inode.file
        size = sum(block.numBytes for block in file.blocks)
        numbers = (file.replication, file.modificationTime, file.accessTime,
                   file.preferredBlockSize, len(file.blocks), size, 0, 0)  # fmt: skip
        return numbers, file.permission, bool(file.acl.entries)
    if inode.HasField("directory"):
        directory = inode.directory
        quotas = signed(directory.nsQuota), signed(directory.dsQuota)
        numbers = (0, directory.modificationTime, 0, 0, 0, 0, *quotas)
        return numbers, directory.permission, bool(directory.acl.entries)
    link = inode.symlink
    return (0, link.modificationTime, link.accessTime, 0, 0, 0, 0, 0), link.permission, False
