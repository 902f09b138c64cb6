"""Refuses to start an election whose znodes any client of ZooKeeper may write.

See docs/security.md#modes.
"""

import ipaddress
import socket

from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys
from ha.conf.keys import zookeeper as keys_zookeeper
from ha.conf.keys.security import SECURITY_MODE, Mode
from ha.conf.keys.units import ensemble
from ha.daemon.exposure import OPEN_TO_STRANGERS
from ha.daemon.process import ExitWith
from ha.elector.zookeeper.credentials import open_to_all
from ha.elector.zookeeper.settings import ZooKeeperSettings


def refuse_open_znodes(
    conf: Configuration, zookeeper: ZooKeeperSettings, *, nameservice: str, namenode: str | None
) -> None:
    """Raise ExitWith (78) if the ACL lets clients without a credential write the znodes.

    Allowed are a ZooKeeper on loopback, the permissive mode, and any value of
    nnha.zookeeper.open-acl, by which an operator has decided.
    """
    mode = conf.get(SECURITY_MODE)
    decided = conf.is_set(keys_zookeeper.OPEN_ACL, nameservice=nameservice, namenode=namenode)
    if mode not in (Mode.AUTO, Mode.STRICT) or decided or not open_to_all(zookeeper.acl):
        return
    if all(_is_here(server.host) for server in ensemble(zookeeper.hosts).servers):
        return
    raise ExitWith(
        OPEN_TO_STRANGERS,
        f"refused to start: by {keys.ZOOKEEPER_ACL.name} anybody who reaches ZooKeeper at "
        f"{zookeeper.hosts} may delete the lock of the election, name another NameNode to be "
        f"fenced, or pause failover. Give the ZKFCs a credential, {keys.ZOOKEEPER_AUTH.name}=@FILE "
        f"or a client certificate: the znodes are theirs alone then. Znodes that are there already "
        f"are closed by: nnha zkfc --format-zk --keep. Or say that only trusted hosts reach "
        f"ZooKeeper: {keys_zookeeper.OPEN_ACL.name}=warn, or "
        f"{SECURITY_MODE.name}={Mode.PERMISSIVE}. Nothing was changed.",
    )


def _is_here(host: str) -> bool:
    """Return whether the host is loopback only; False for a name that cannot be resolved."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)
