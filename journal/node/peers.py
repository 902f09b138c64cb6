"""Finds the other nodes of a journal: those in the configuration without this one.

See docs/reference/journal-node.md#background-sync.
"""

import socket
from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import journal as keys
from ha.conf.keys.cluster import NAMENODES, NAMESERVICES
from ha.conf.topology import JournalUri, shared_edits
from ha.names import NAMES, Unresolved
from ha.record import dataclass

log = structlog.get_logger()

Peer = tuple[str, int]

RESOLVE_SECONDS: Final = 5.0
"""Limit for each name; a node that stops waits for a lookup in the background."""
_WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})


@dataclass(frozen=True, slots=True)
class Own:
    """The address at which this node listens; ``hadoop_port`` is 0 without Hadoop RPC."""

    host: str
    port: int
    hadoop_port: int = 0

    def is_own(self, peer: Peer) -> bool:
        """Return whether a configured address is one of this node's.

        Its port must be this node's: several nodes may run on one machine.  A wildcard in the
        configuration means this machine; if this node listens on all addresses, each local one is
        its own.
        """
        host, port = peer
        if port not in {self.port, self.hadoop_port}:
            return False
        if host == self.host or host in _WILDCARDS:
            return True
        theirs = addresses(host)
        if self.host in _WILDCARDS:
            return any(_is_local(address) for address in theirs)
        return bool(theirs & addresses(self.host))

    def others(self, nodes: Sequence[Peer]) -> tuple[Peer, ...]:
        """Return the nodes without this one; it resolves names, which may block."""
        return tuple(peer for peer in nodes if not self.is_own(peer))


def addresses(host: str) -> set[str]:
    """Return the addresses of a host; none if its name does not resolve at the moment."""
    try:
        return {str(entry[4][0]) for entry in NAMES.addresses(host, 0, RESOLVE_SECONDS)}
    except Unresolved:
        return set()


def _is_local(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def configured_peers(conf: Configuration) -> Mapping[str, tuple[Peer, ...]]:
    """Return the nodes of each journal that is synced in the background; none if sync is off."""
    return configured_nodes(conf) if conf.get(keys.SYNC) else {}


def configured_nodes(conf: Configuration) -> Mapping[str, tuple[Peer, ...]]:
    """Return the nodes of each journal that the configuration names.

    ``dfs.namenode.shared.edits.dir`` may be set globally, per nameservice and per NameNode.  A
    journal for which two values have different nodes is left out with an error in the log: it is
    served, but not synced.  The same holds for a value that cannot be parsed.
    """
    found: dict[str, tuple[Peer, ...]] = {}
    contradicted: set[str] = set()
    for uri in _uris(conf):
        nodes = tuple((node.host, node.port) for node in uri.nodes)
        if set(found.setdefault(uri.journal_id, nodes)) != set(nodes):
            contradicted.add(uri.journal_id)
    for journal_id in contradicted:
        log.error("sync.peers_contradict", journal=journal_id, key=keys.SHARED_EDITS.name)
        del found[journal_id]
    return found


def named_journals(conf: Configuration) -> frozenset[str]:
    """Return the id of each journal that the configuration names, on any nodes."""
    return frozenset(uri.journal_id for uri in _uris(conf))


def _uris(conf: Configuration) -> list[JournalUri]:
    """Return each value of the key that a NameNode reads, without duplicates."""
    scopes: list[tuple[str, str | None]] = []
    for nameservice in conf.get(NAMESERVICES) or ("",):
        scopes.append((nameservice, None))
        if nameservice:
            names = conf.get(NAMENODES, nameservice=nameservice)
            scopes.extend((nameservice, name) for name in names)
    found: dict[JournalUri, None] = {}
    for nameservice, name in scopes:
        value = conf.get(keys.SHARED_EDITS, nameservice=nameservice, namenode=name)
        if not value:
            continue
        try:
            found[shared_edits(conf, nameservice, name)] = None
        except ConfigurationError as bad:
            log.error("sync.no_peers", because=str(bad))  # noqa: TRY400 - it says it all
    return list(found)
