"""VERSION identifies the file system of a name directory, as Java properties.

See docs/reference/namenode.md#name-directories.

Pure.
"""

from collections.abc import Mapping
from typing import Final

from hadoop.java_properties import escape, properties
from journal.model import NamespaceInfo

NAME_NODE: Final = "NAME_NODE"


def version_text(info: NamespaceInfo, *, comment: str) -> bytes:
    """Return a name directory's VERSION, as Hadoop writes it; ``comment`` is its first line."""
    pairs = {
        "namespaceID": str(info.namespace_id),
        "clusterID": info.cluster_id,
        "cTime": str(info.ctime),
        "storageType": NAME_NODE,
        "blockpoolID": info.block_pool_id,
        "layoutVersion": str(info.layout_version),
    }
    lines = [f"#{comment}", *(f"{name}={escape(content)}" for name, content in pairs.items())]
    return ("\n".join(lines) + "\n").encode("latin-1")


def parse_version(data: bytes) -> NamespaceInfo:
    """Parse a VERSION file.

    Raises:
        ValueError: if a field is missing or no number, or another kind of node owns the directory.
    """
    found = properties(data)
    owner = found.get("storageType", NAME_NODE)
    if owner != NAME_NODE:
        raise ValueError(f"the directory belongs to a {owner}, not to a {NAME_NODE}")
    needed = ("layoutVersion", "namespaceID", "clusterID", "cTime", "blockpoolID")
    missing = [name for name in needed if name not in found]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    return NamespaceInfo(
        layout_version=_number(found, "layoutVersion"),
        namespace_id=_number(found, "namespaceID"),
        cluster_id=found["clusterID"],
        ctime=_number(found, "cTime"),
        block_pool_id=found["blockpoolID"],
    )


def _number(found: Mapping[str, str], name: str) -> int:
    try:
        return int(found[name])
    except ValueError:
        raise ValueError(f"its {name} is {found[name]!r}, no number") from None
