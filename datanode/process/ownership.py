"""Whose the data directories are, before anything is written into them."""

import uuid
from collections.abc import Sequence

from datanode.errors import UnusableVolume, WrongNamespace
from datanode.namenodes.identity import Namespace
from datanode.replicas.volume import Volume


def uuid_of(volumes: Sequence[Volume], namespace: Namespace) -> str:
    """Return the uuid of the DataNode that the volumes belong to, a new one if all are new.

    Raises:
        WrongNamespace: one is of another cluster.
        UnusableVolume: they do not belong together.
    """
    for volume in volumes:
        found = volume.version
        if found is not None and found.cluster_id != namespace.cluster_id:
            raise WrongNamespace(
                f"{volume.path} belongs to cluster {found.cluster_id}, the NameNode to "
                f"{namespace.cluster_id}. Point the DataNode to the directories of this "
                "cluster; nothing was changed"
            )
    versions = [volume.version for volume in volumes if volume.version is not None]
    uuids = {version.datanode_uuid for version in versions} or {str(uuid.uuid4())}
    storages = [version.storage for version in versions]
    if len(uuids) > 1 or len(set(storages)) < len(storages):
        raise UnusableVolume(
            volumes[0].path,
            f"and the other data directories do not belong together: DataNodes {sorted(uuids)},"
            f" storages {sorted(storages)}",
            "One may be a copy of another: take it out of dfs.datanode.data.dir. Nothing was "
            "changed.",
        )
    return uuids.pop()
