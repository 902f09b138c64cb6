"""Hadoop's directories of a DataNode (layout -57): names of files, contents of VERSION.

See docs/reference/datanode.md#data-directories.

Pure.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from datanode import model
from ha.record import dataclass
from hadoop.blocks import Block, BlockId, GenerationStamp, PoolId
from hadoop.java_properties import escape, properties

LAYOUT_VERSION: Final = -57
DATA_NODE: Final = "DATA_NODE"
CURRENT: Final = "current"
VERSION: Final = "VERSION"
FINALIZED: Final = "finalized"
RBW: Final = "rbw"
TMP: Final = "tmp"
OLD_REPLICA_LIST: Final = "replicas"
"""Java's list of states at its last stop; it must go, or Java believes it after us."""
_BLOCK_FILE: Final = re.compile(r"blk_(-?\d{1,19})")
_META_FILE: Final = re.compile(r"blk_(-?\d{1,19})_(\d{1,19})\.meta")
_FAN_OUT: Final = 31


@dataclass(frozen=True, slots=True)
class NodeVersion:
    """What ``current/VERSION`` says of one data directory."""

    storage: model.StorageId
    datanode_uuid: str
    cluster_id: str
    layout_version: int = LAYOUT_VERSION


@dataclass(frozen=True, slots=True)
class PoolVersion:
    """What ``current/<pool>/current/VERSION`` says of one block pool."""

    pool: PoolId
    namespace_id: int
    ctime: int
    layout_version: int = LAYOUT_VERSION


def block_name(block_id: BlockId) -> str:
    return f"blk_{block_id}"


def meta_name(block: Block) -> str:
    return f"{block}.meta"


def parse_block_name(name: str) -> BlockId | None:
    found = _BLOCK_FILE.fullmatch(name)
    return BlockId(int(found[1])) if found else None


def parse_meta_name(name: str) -> Block | None:
    found = _META_FILE.fullmatch(name)
    return Block(BlockId(int(found[1])), GenerationStamp(int(found[2]))) if found else None


def subdirectory(block_id: BlockId) -> Path:
    """Return the folder of a block below ``finalized``."""
    return Path(f"subdir{block_id >> 16 & _FAN_OUT}") / f"subdir{block_id >> 8 & _FAN_OUT}"


def folder_of(pool_folder: Path, replica: model.Replica) -> Path:
    """Return the folder for the files of a replica, below ``current/<pool>``."""
    if isinstance(replica, model.Temporary):
        return pool_folder / TMP
    if model.reported_state(replica) is model.ReplicaState.FINALIZED:
        return pool_folder / CURRENT / FINALIZED / subdirectory(replica.block.block_id)
    return pool_folder / CURRENT / RBW


def node_version_text(version: NodeVersion, *, comment: str) -> bytes:
    return _text(
        {
            "storageID": version.storage,
            "clusterID": version.cluster_id,
            "cTime": "0",
            "datanodeUuid": version.datanode_uuid,
            "storageType": DATA_NODE,
            "layoutVersion": str(version.layout_version),
        },
        comment,
    )


def pool_version_text(version: PoolVersion, *, comment: str) -> bytes:
    return _text(
        {
            "namespaceID": str(version.namespace_id),
            "cTime": str(version.ctime),
            "blockpoolID": version.pool,
            "layoutVersion": str(version.layout_version),
        },
        comment,
    )


def parse_node_version(data: bytes) -> NodeVersion:
    """Parse a VERSION file; raise ``ValueError`` if it is no DataNode's, or has another layout."""
    found = _fields(data, "storageID", "clusterID", "datanodeUuid", "layoutVersion", "storageType")
    if found["storageType"] != DATA_NODE:
        raise ValueError(f"it belongs to a {found['storageType']}, not to a {DATA_NODE}")
    return NodeVersion(
        model.StorageId(found["storageID"]),
        found["datanodeUuid"],
        found["clusterID"],
        _layout(found["layoutVersion"]),
    )


def parse_pool_version(data: bytes) -> PoolVersion:
    """Parse a pool's VERSION; raise ``ValueError`` for a bad field or another layout."""
    found = _fields(data, "namespaceID", "cTime", "blockpoolID", "layoutVersion")
    return PoolVersion(
        PoolId(found["blockpoolID"]),
        int(found["namespaceID"]),
        int(found["cTime"]),
        _layout(found["layoutVersion"]),
    )


class OtherLayout(ValueError):
    """A directory of this DataNode that another Hadoop wrote; ``advice`` says what to do."""

    def __init__(self, layout: int) -> None:
        super().__init__(f"it has layout {layout}; only {LAYOUT_VERSION} is known")
        self.advice = (
            "Start Hadoop 3's DataNode on it once, which upgrades it (HDFS-8791); then this one."
            if layout > LAYOUT_VERSION
            else "A newer Hadoop wrote it: use that one's DataNode, or an nnha that knows it."
        )


def _layout(text: str) -> int:
    layout = int(text)
    if layout != LAYOUT_VERSION:
        raise OtherLayout(layout)
    return layout


def _fields(data: bytes, *names: str) -> Mapping[str, str]:
    found = properties(data)
    missing = [name for name in names if not found.get(name)]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    return found


def _text(pairs: Mapping[str, str], comment: str) -> bytes:
    lines = [f"#{comment}", *(f"{name}={escape(value)}" for name, value in pairs.items())]
    return ("\n".join(lines) + "\n").encode("latin-1")
