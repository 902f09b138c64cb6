"""Name directories with a new file system in them."""

from collections.abc import Sequence
from pathlib import Path

from journal.model import NamespaceInfo
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.format import format_locked, lock_all, refuse_occupied


def format_name_dirs(
    directories: Sequence[Path],
    namespace_info: NamespaceInfo,
    namespace: Namespace,
    *,
    force: bool = False,
) -> None:
    """Format directories as ``nnha namenode --format`` does; ``force`` erases what is there."""
    with lock_all(directories):
        if not force:
            refuse_occupied(directories)
        format_locked(directories, namespace_info, namespace)
