"""The hosts files: which DataNodes may register, and which are to leave service.  Pure.

See docs/reference/datanodes.md#hosts-files.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ha.record import dataclass, field, replace
from namenode_sim.datanodes.errors import BadHosts
from namenode_sim.datanodes.membership.admin import SERVICE, Asked, Kind
from namenode_sim.datanodes.model import DatanodeId

_PORTS: Final = range(65_536)
_TRANSFER_PORT, _INFO_PORT, _IPC_PORT = 9866, 9864, 9867
"""Hadoop's defaults."""

_FOR_EVER_MS: Final = 2**63 - 1
"""Hadoop's default of maintenanceExpireTimeInMS."""

_KINDS: Final = {
    "NORMAL": Kind.SERVICE,
    "DECOMMISSIONED": Kind.DECOMMISSION,
    "IN_MAINTENANCE": Kind.MAINTENANCE,
}


@dataclass(frozen=True, slots=True)
class HostEntry:
    """One host of a list, any DataNode on it where ``port`` is 0, and what is asked of it."""

    host: str
    port: int = 0
    asked: Asked = SERVICE


@dataclass(frozen=True, slots=True)
class HostLists:
    """``included`` may register, all may where it is None; ``marked`` is asked to leave service.

    ``addresses`` are those of the hosts that are named, as far as they could be looked up.
    """

    included: tuple[HostEntry, ...] | None = None
    marked: tuple[HostEntry, ...] = ()
    addresses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    _by_name: Mapping[str, Sequence[HostEntry]] = field(init=False, compare=False, repr=False)
    _marked: Mapping[str, Sequence[HostEntry]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", _index(self.included or (), self.addresses))
        # A DataNode that only calls itself so may leave, and is not let in by it.
        marked = _index(self.marked, self.addresses, by_claim=True)
        object.__setattr__(self, "_marked", marked)

    def includes(self, who: DatanodeId) -> bool:
        """Return whether a DataNode may register."""
        return self.included is None or any(_matching(self._by_name, who))

    def asked(self, who: DatanodeId) -> Asked:
        """Return what is asked of a DataNode; maintenance goes before decommissioning."""
        found = [entry.asked for entry in _matching(self._marked, who)]
        maintained = [one for one in found if one.kind is Kind.MAINTENANCE]
        return next(iter((*maintained, *found)), SERVICE)

    def unseen(self, known: Iterable[DatanodeId]) -> list[DatanodeId]:
        """Return the DataNodes on the include list that never came, without a uuid."""
        seen = {id(one) for who in known for one in _matching(self._by_name, who)}
        never = [entry for entry in self.included or () if id(entry) not in seen]
        ips = [min(self.addresses.get(one.host, ()), default=one.host) for one in never]
        return [
            DatanodeId("", ip, one.host, one.port or _TRANSFER_PORT, _INFO_PORT, _IPC_PORT)
            for ip, one in zip(ips, never, strict=True)
        ]

    def with_former(self, addresses: Mapping[str, frozenset[str]]) -> "HostLists":
        """Return these lists with addresses that were found before, where none was found now.

        Bad schedule: the DNS is away for a moment, and DataNodes that leave seem to serve again.
        """
        former = {name: addresses[name] for name in self.names() & addresses.keys()}
        return replace(self, addresses=former | dict(self.addresses))

    def names(self) -> set[str]:
        return {entry.host for entry in (*(self.included or ()), *self.marked)}


def _index(
    entries: Iterable[HostEntry],
    addresses: Mapping[str, frozenset[str]],
    *,
    by_claim: bool = False,
) -> Mapping[str, Sequence[HostEntry]]:
    """Return entries by address, and by name if that has none, or ``by_claim``."""
    found: dict[str, list[HostEntry]] = {}
    for entry in entries:
        known = addresses.get(entry.host, frozenset())
        for name in known | {entry.host.lower()} if by_claim or not known else known:
            found.setdefault(name, []).append(entry)
    return found


def _matching(index: Mapping[str, Sequence[HostEntry]], who: DatanodeId) -> Iterator[HostEntry]:
    for name in dict.fromkeys((who.ip, who.host.lower())):
        for entry in index.get(name, ()):
            if entry.port in (0, who.transfer_port):
                yield entry


def text_lists(include: str, exclude: str, files: tuple[str, str]) -> HostLists:
    """Read Hadoop's two lists, dfs.hosts and dfs.hosts.exclude, from their text; or BadHosts."""
    included = tuple(_entries(include, files[0], SERVICE))
    marked = tuple(_entries(exclude, files[1], Asked(Kind.DECOMMISSION)))
    return HostLists(included or None, marked)


def _entries(text: str, file: str, asked: Asked) -> Iterator[HostEntry]:
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.partition("#")[0].split():
            host, port = _host_and_port(word)
            if not host or port is None:
                raise BadHosts(f"{file}, line {number}", f"{word[:256]!r} is no host or host:port")
            yield HostEntry(host, port, asked)


def _host_and_port(word: str) -> tuple[str, int | None]:
    """Return a host and its port, 0 if there is none, None if it is not valid."""
    if word.startswith("["):
        host, _, rest = word[1:].partition("]")
        colon, port = rest[:1], rest[1:]
    elif word.count(":") > 1:
        host, colon, port = word, "", ""
    else:
        host, colon, port = word.partition(":")
    if not colon:
        return host, 0
    valid = (
        colon == ":"
        and port.isascii()
        and port.isdigit()
        and len(port) <= 5
        and int(port) in _PORTS
    )
    return host, int(port) if valid else None


def json_lists(text: str, file: str) -> HostLists:
    """Read the file of CombinedHostFileManager: an array of objects, or objects one by one.

    All that are named may register, once any of them is to be in service. Raises BadHosts.
    """
    entries = tuple(_parse_entry(one, file) for one in _objects(text, file))
    restricted = any(entry.asked.kind is Kind.SERVICE for entry in entries)
    marked = tuple(entry for entry in entries if entry.asked.kind is not Kind.SERVICE)
    return HostLists(entries if restricted else None, marked)


def _objects(text: str, file: str) -> list[Any]:
    decoder, found, at = json.JSONDecoder(), list[Any](), 0
    try:
        while rest := text[at:].lstrip():
            at = len(text) - len(rest)
            one, at = decoder.raw_decode(text, at)
            found.append(one)
    except (ValueError, RecursionError) as problem:
        raise BadHosts(file, f"it is no JSON: {problem}") from problem
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _parse_entry(one: Any, file: str) -> HostEntry:  # noqa: ANN401 - what JSON holds
    fields = one if isinstance(one, dict) else {}
    host, port = fields.get("hostName"), fields.get("port", 0)
    kind = _KINDS.get(fields.get("adminState") or "NORMAL")
    until = fields.get("maintenanceExpireTimeInMS", _FOR_EVER_MS)
    valid = isinstance(host, str) and host and type(port) is int and port in _PORTS
    if not valid or kind is None or type(until) is not int:
        raise BadHosts(
            file,
            f"{json.dumps(one)[:256]} needs a hostName, a port if any, and an adminState of "
            f"{', '.join(_KINDS)}",
        )
    assert isinstance(host, str)
    expires = until if kind is Kind.MAINTENANCE and until != _FOR_EVER_MS else None
    return HostEntry(host, port, Asked(kind, expires))


ALL_HOSTS: Final = HostLists()
"""All may register, and none leaves."""
