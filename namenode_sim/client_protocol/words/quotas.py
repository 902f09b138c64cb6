"""Room in quotas: of names, of space, of space on a type of storage (DirectoryWithQuotaFeature)."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ha.rpc.java_names import (
    NAMESPACE_QUOTA_EXCEEDED,
    SPACE_QUOTA_EXCEEDED,
    TYPE_QUOTA_EXCEEDED,
)
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes.storage_policies import POLICIES
from namenode_sim.edits.values import Block, StorageType
from namenode_sim.namespace import inode
from namenode_sim.namespace.file_numbers import pack_blocks
from namenode_sim.namespace.snapshots import held
from namenode_sim.namespace.usage import Use, above, effective_policy_id, use_of_file

_PREFIXES: Final = "KMGTPE"


def by_type(use: Use) -> Counter[StorageType]:
    """Return the bytes on each type of storage; only files with a storage policy are on one."""
    sums: Counter[StorageType] = Counter()
    for kind, size in use.sizes.items():
        if kind.policy_id in POLICIES:
            for one in POLICIES[kind.policy_id].types(kind.replication):
                sums[StorageType[one.name]] += size
    return sums


def check(
    scene: Scene, directory: inode.INodeDirectory, added: Use, *, stop: inode.INode | None = None
) -> None:
    """Check the quotas of a directory and those above it, up to (without) ``stop``.

    Of what does not grow nothing is refused, though a quota be less than what is there.  Raise
    FsError.
    """
    for step in limited(directory, stop):
        _check_one(scene, step, added)


def limited(
    directory: inode.INodeDirectory | None, stop: inode.INode | None = None
) -> Iterator[inode.INodeDirectory]:
    """Yield those of a directory and the ones above it that have quotas, the lowest first."""
    for step in above(directory):
        if step is stop:
            return
        if step.quotas not in (inode.NO_QUOTAS, inode.ROOT_QUOTAS):
            yield step


def check_change(scene: Scene, file: inode.INodeFile, after: inode.INodeFile) -> None:
    """Check that a file may become what ``after`` is, in the place that it has; raise FsError."""
    if file.parent is None or not any(limited(file.parent)):
        return
    policy_id = effective_policy_id(file.parent)
    added = use_of_file(after, policy_id)
    added.add(use_of_file(file, policy_id), -1)
    check(scene, file.parent, added)


def opened(file: inode.INodeFile, blocks: tuple[Block, ...]) -> inode.INodeFile:
    """Return the file with these blocks, the last one to be written to."""
    writer = inode.UnderConstruction("", "")
    return file.changed(pack_blocks(blocks), file.traits._replace(under_construction=writer))


def _check_one(scene: Scene, directory: inode.INodeDirectory, added: Use) -> None:
    quotas, used = directory.quotas, held.use_of(scene.namespace.tree, directory)
    path = inode.full_path(directory)
    names, space = used.names + added.names, added.space()
    if added.names > 0 and 0 <= quotas.namespace < min(names, inode.QUOTA_DONT_SET):
        raise FsError(
            NAMESPACE_QUOTA_EXCEEDED,
            f"The NameSpace quota (directories and files) of directory {path} is exceeded: "
            f"quota={quotas.namespace} file count={names}",
        )
    if space > 0 and 0 <= quotas.space < used.space() + space:
        total = used.space() + space
        raise FsError(
            SPACE_QUOTA_EXCEEDED,
            f"The DiskSpace quota of {path} is exceeded: quota = {quotas.space} B = "
            f"{prefixed(quotas.space)} but diskspace consumed = {total} B = {prefixed(total)}",
        )
    if not quotas.by_type:
        return
    grown, there = by_type(added), by_type(used)
    for number, quota in quotas.by_type:
        kind = StorageType(number)
        total = there[kind] + grown[kind]
        if grown[kind] > 0 and 0 <= quota < total:
            raise FsError(
                TYPE_QUOTA_EXCEEDED,
                f"Quota by storage type : {kind.name} on path : {path} is exceeded. quota = "
                f"{prefixed(quota)} but space consumed = {prefixed(total)}",
            )


def prefixed(count: int) -> str:
    """Return bytes as Hadoop writes them (StringUtils.TraditionalBinaryPrefix.long2String)."""
    if count < 1024:
        return f"{count} B"
    power = (count.bit_length() - 1) // 10
    whole, rest = divmod(count, 1 << 10 * power)
    text = f"{count / (1 << 10 * power):.2f}" if rest else str(whole)
    if text.startswith("1024"):
        power, text = power + 1, f"{count / (1 << 10 * (power + 1)):.2f}"
    return f"{text} {_PREFIXES[power - 1]}B"
