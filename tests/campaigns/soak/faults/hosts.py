"""The hosts of a cluster under faults: their names, addresses, and which processes run there."""

from typing import Final

ZOOKEEPERS: Final = ("zk1", "zk2", "zk3")
JOURNALNODES: Final = ("jn1", "jn2", "jn3")
NAMENODES: Final = ("nn1", "nn2", "nn3")
DATANODES: Final = ("dn1", "dn2", "dn3")
"""They run where clients write files."""
CLIENTS: Final = "clients"
READERS: Final = "readers"
"""Clients that only read, on a host of their own: writes would show them that an active is old."""
FILE_CLIENTS: Final = "files"
"""Hadoop's own client, which writes and reads files."""
OPERATORS: Final = "ops"
"""Where the campaign itself looks from; no fault touches it."""

SERVERS: Final = (*ZOOKEEPERS, *JOURNALNODES, *NAMENODES)
HOSTS: Final = (*SERVERS, *DATANODES, CLIENTS, READERS, FILE_CLIENTS, OPERATORS)

NAMESERVICE: Final = "ns1"
CLIENT_PORT: Final = 2181
PEER_PORT: Final = 2888
ELECTION_PORT: Final = 3888
JOURNAL_PORT: Final = 8485
JOURNAL_HTTP_PORT: Final = 8480
NAMENODE_PORT: Final = 8020
NAMENODE_HTTP_PORT: Final = 9870
ZKFC_PORT: Final = 8019
ZKFC_HTTP_PORT: Final = 8018
DATANODE_PORT: Final = 9866
DATANODE_IPC_PORT: Final = 9867
DATANODE_HTTP_PORT: Final = 9864

_FIRST: Final = {"zk": 10, "jn": 20, "nn": 30, "dn": 40}
_LAST: Final = {CLIENTS: 51, READERS: 52, FILE_CLIENTS: 53, OPERATORS: 61}


def address(host: str) -> str:
    """Return a host's address on the switch; no other run nor the machine itself can reach it."""
    last = _LAST[host] if host in _LAST else _FIRST[host[:2]] + int(host[2:])
    return f"10.77.0.{last}"


def zkfc_of(namenode: str) -> str:
    return f"zkfc-{namenode}"


def host_of(process: str) -> str:
    """Return where a process runs; those of ZKFCs are ``zkfc-nn1`` and so on."""
    return process.removeprefix("zkfc-")


def processes_of(host: str) -> tuple[str, ...]:
    return (host, zkfc_of(host)) if host in NAMENODES else (host,)


PROCESSES: Final = tuple(name for host in SERVERS for name in processes_of(host))
