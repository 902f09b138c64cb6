"""Every key with a type and a default, by name."""

from collections.abc import Mapping
from typing import Final

from ha.conf.keys import (
    blocks,
    candidate,
    checkpoint,
    cluster,
    datanode,
    files,
    hosts,
    journal,
    kerberos,
    namenode,
    security,
    web,
    zookeeper,
)
from ha.conf.keys.key import Key

_MODULES: Final = (
    blocks, candidate, checkpoint, cluster, datanode, files, hosts, journal, kerberos, namenode,
    security, web, zookeeper,
)  # fmt: skip

KEYS: Final[Mapping[str, Key[object]]] = {
    key.name: key for module in _MODULES for key in vars(module).values() if isinstance(key, Key)
}
