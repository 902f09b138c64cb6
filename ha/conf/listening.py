"""Where each daemon listens, and why there: for the daemon itself and for ``nnha config explain``.

A daemon that others are to reach does not listen on loopback.  Where no address is configured it
listens where Hadoop's does, if ``nnha.security.mode`` lets other hosts in, and on loopback if not,
or if everything in the configuration is there.
"""

import ipaddress
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import cluster as keys
from ha.conf.keys import datanode as keys_datanode
from ha.conf.keys import journal as keys_journal
from ha.conf.keys.key import Key
from ha.conf.keys.security import SECURITY_MODE
from ha.conf.keys.units import HostPort
from ha.conf.topology import is_local, lets_other_hosts_in, namenode_address, shared_edits
from ha.names import NAMES
from ha.record import dataclass, field

LOOPBACK: Final = "127.0.0.1"
EVERYWHERE: Final = "0.0.0.0"
RESOLVER_SECONDS: Final = 3.0
"""For one name of the configuration; a silent name server keeps a start no longer than that."""

BIND_HOSTS: Final[dict[Key[Any], tuple[Key[str | None], ...]]] = {
    keys_journal.RPC: (keys_journal.RPC_BIND,),
    keys_journal.HTTP: (keys_journal.HTTP_BIND,),
    keys_journal.HTTPS: (keys_journal.HTTPS_BIND,),
    keys_journal.HADOOP_RPC: (keys_journal.HADOOP_RPC_BIND,),
    keys_datanode.DATA: (),
    keys_datanode.RPC: (),
    keys_datanode.HTTP: (),
    keys.NAMENODE_RPC: (keys.NAMENODE_RPC_BIND,),
    keys.NAMENODE_SERVICE_RPC: (keys.NAMENODE_SERVICE_RPC_BIND,),
    keys.NAMENODE_LIFELINE_RPC: (keys.NAMENODE_LIFELINE_BIND,),
    keys.NAMENODE_HTTP: (keys.NAMENODE_HTTP_BIND,),
    keys.ZKFC_PORT: (keys.NAMENODE_SERVICE_RPC_BIND, keys.NAMENODE_RPC_BIND),
    keys.ZKFC_HTTP: (),
}
"""The key of each listener, and the keys that name another host to listen on, the first wins."""

SERVED_BY: Final[dict[Key[Any], Key[Any]]] = {
    keys.NAMENODE_SERVICE_RPC: keys.NAMENODE_RPC,
    keys.NAMENODE_LIFELINE_RPC: keys.NAMENODE_SERVICE_RPC,
}
"""Which listener takes the calls of one that has no address."""


@dataclass(frozen=True, slots=True)
class Door:
    """One address that a daemon listens on; ``key`` names it in the configuration.

    ``why`` says what decided the host; it is no part of what the door is.
    """

    key: str
    host: str
    port: int
    why: str = field(default="", compare=False)

    @property
    def address(self) -> HostPort:
        return HostPort(self.host, self.port)

    def __str__(self) -> str:
        return f"{self.key}={self.address}"


def door_of(
    conf: Configuration,
    key: Key[Any],
    *,
    nameservice: str | None = None,
    namenode: str | None = None,
) -> Door | None:
    """Return where the daemon listens that owns this key of ``BIND_HOSTS``, None if nowhere.

    The keys of NameNode and ZKFC need both ids.  Names of hosts are looked up on this machine.

    Raises:
        ConfigurationError: for a value that cannot be read, or a NameNode without an address.
    """
    scope = {"nameservice": nameservice, "namenode": namenode}
    said = _address(conf, key, scope)
    if said is None:
        instead = SERVED_BY.get(key)
        return None if instead is None else door_of(conf, instead, **scope)
    chosen = conf.is_set(key, **scope)
    # The page of a ZKFC that has no address of its own stands where its RPC does.
    with_rpc = key is keys.ZKFC_HTTP and not chosen and lets_other_hosts_in(conf)
    for bind_key in BIND_HOSTS[keys.ZKFC_PORT if with_rpc else key]:
        if bind := conf.get(bind_key, **scope):
            return Door(key.name, bind, said.port, conf.where(bind_key, **scope))
    if key is keys.ZKFC_PORT or chosen:
        service = conf.is_set(keys.NAMENODE_SERVICE_RPC, **scope)
        rpc = keys.NAMENODE_SERVICE_RPC if service else keys.NAMENODE_RPC
        named_by = rpc if key is keys.ZKFC_PORT else key
        return Door(key.name, said.host, said.port, conf.where(named_by, **scope))
    host, why = _default_host(conf, key, said.host)
    return Door(key.name, host, said.port, f"no address is set, and {why}")


def required_door(
    conf: Configuration,
    key: Key[Any],
    *,
    nameservice: str | None = None,
    namenode: str | None = None,
) -> Door:
    """Return where a listener is whose key has a default; raises as ``door_of``."""
    door = door_of(conf, key, nameservice=nameservice, namenode=namenode)
    assert door is not None, f"{key.name} has a default"
    return door


def elsewhere(conf: Configuration) -> str | None:
    """Return the first host in the configuration that is not on this machine's loopback."""
    return next((host for host in named_hosts(conf) if not is_loopback(host, unknown=False)), None)


def is_loopback(host: str, *, unknown: bool = True) -> bool:
    """Return whether only this machine reaches a listener on ``host``, an address or a name.

    A name means what the resolver says now; ``unknown`` is returned for one that it does not know.
    That cannot be listened on either, and the error is left to the caller that tries.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    if not host:
        return False  # all interfaces
    try:
        found = NAMES.addresses(host, 0, RESOLVER_SECONDS)
    except (OSError, UnicodeError):
        return unknown
    return all(ipaddress.ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)


def _address(conf: Configuration, key: Key[Any], scope: dict[str, str | None]) -> HostPort | None:
    """Return the address of a key as others call it."""
    nameservice, namenode = scope["nameservice"], scope["namenode"]
    address: HostPort | None
    if nameservice is not None and namenode is not None:
        node = namenode_address(conf, nameservice, namenode)
        known = {keys.ZKFC_PORT: node.zkfc, keys.ZKFC_HTTP: node.zkfc_http}
        if not conf.is_set(keys.NAMENODE_HTTP, **scope):
            known[keys.NAMENODE_HTTP] = HostPort(node.rpc.host, node.http.port)
        if key in known:
            return known[key]
    address = conf.get(key, **scope)
    return address


def _default_host(conf: Configuration, key: Key[Any], host: str) -> tuple[str, str]:
    """Return the host of a listener that has no address, and the reason.

    ``host`` is where others look for it.
    """
    journal = key in (keys_journal.RPC, keys_journal.HTTP, keys_journal.HTTPS)
    own = own_name(conf, conf.get(keys_journal.RPC).port) if journal else host
    mode = f"{SECURITY_MODE.name}={conf.get(SECURITY_MODE)}"
    if any(named_hosts(conf)) and elsewhere(conf) is None:
        here = own if own is not None and is_loopback(own) else LOOPBACK
        return here, "every host in the configuration is on loopback"
    if not lets_other_hosts_in(conf):
        return LOOPBACK, f"{mode} without certificates serves this host only"
    if journal and own is not None and not is_loopback(own):
        return own, f"{mode} lets others in: this host's name in {keys_journal.SHARED_EDITS.name}"
    if key is keys.ZKFC_HTTP:
        return host, f"{mode} lets others in: the host of its RPC"
    return EVERYWHERE, f"{mode} lets others in: Hadoop's default"


def own_name(conf: Configuration, port: int) -> str | None:
    """Return the one JournalNode in the configuration that has an address of this machine."""
    own = {node.host for node in journalnodes(conf) if node.port == port and is_local(node.host)}
    return own.pop() if len(own) == 1 else None


def named_hosts(conf: Configuration) -> Iterator[str]:
    """Yield the host of each JournalNode and NameNode that the configuration names."""
    yield from (node.host for node in journalnodes(conf))
    for nameservice, namenode in _scopes(conf):
        address = conf.get(keys.NAMENODE_RPC, nameservice=nameservice, namenode=namenode)
        if address is not None:
            yield address.host


def journalnodes(conf: Configuration) -> Iterator[HostPort]:
    """Yield each JournalNode that a nameservice's shared edits name, perhaps twice."""
    for nameservice, namenode in _scopes(conf):
        with suppress(ConfigurationError):
            yield from shared_edits(conf, nameservice, namenode).nodes


def _scopes(conf: Configuration) -> Iterator[tuple[str, str | None]]:
    for nameservice in conf.get(keys.NAMESERVICES) or ("",):
        yield nameservice, None
        for namenode in conf.get(keys.NAMENODES, nameservice=nameservice):
            yield nameservice, namenode
