"""The processes of the cluster, and the address of each."""

import socket
from contextlib import suppress
from urllib.parse import urlparse

from ha.conf.configuration import Configuration
from ha.conf.errors import BadValue, ConfigurationError
from ha.conf.keys import cluster as keys
from ha.conf.keys import journal as keys_journal
from ha.conf.keys.security import SECURITY_MODE, TLS_DIR, Mode
from ha.conf.keys.units import HostPort, host_port
from ha.record import dataclass

__all__ = [
    "HostPort",
    "JournalUri",
    "NameNodeAddress",
    "is_local",
    "lets_other_hosts_in",
    "local_namenode",
    "namenode",
    "namenode_address",
    "namenode_ids",
    "namenodes",
    "nameservice_of",
    "shared_edits",
]

JOURNAL_PORT = 8485
_SHAPE = "qjournal://host:port;host:port;host:port/journal-id"
_WILDCARDS = ("0.0.0.0", "::", "*")


@dataclass(frozen=True, slots=True)
class NameNodeAddress:
    """One NameNode with its ZKFC.

    ``service`` is the service RPC address, or the client RPC address when there is none: the one
    that ZKFC, CLI and fencing use.  ``lifeline`` is the address of health probes.
    """

    nameservice: str
    namenode: str
    rpc: HostPort
    service: HostPort
    http: HostPort
    zkfc: HostPort
    zkfc_http: HostPort
    lifeline: HostPort


@dataclass(frozen=True, slots=True)
class JournalUri:
    """The shared edits: the nodes of the quorum and the journal's name on each of them."""

    nodes: tuple[HostPort, ...]
    journal_id: str


def nameservice_of(configuration: Configuration) -> str:
    """Return the nameservice that this configuration is about.

    It is ``dfs.nameservice.id``, or the only one there is, or the one in ``fs.defaultFS``. Raises
    ``ConfigurationError`` when none of these decides.
    """
    known = configuration.get(keys.INTERNAL_NAMESERVICES) or configuration.get(keys.NAMESERVICES)
    local = configuration.get(keys.NAMESERVICE_ID)
    if local is None and len(known) == 1:
        return known[0]
    if local is None:
        default = urlparse(configuration.get(keys.FS_DEFAULT)).netloc
        local = default if default in known else None
    if not known:
        raise ConfigurationError(
            f"{keys.NAMESERVICES.name} is not set. Name the nameservice in hdfs-site.xml."
        )
    if local is None:
        raise ConfigurationError(
            f"{keys.NAMESERVICES.name} names several nameservices ({', '.join(known)}). "
            f"Say which one is meant: set {keys.NAMESERVICE_ID.name}."
        )
    if local not in known:
        raise ConfigurationError(
            f"{keys.NAMESERVICE_ID.name} is {local!r}, but {keys.NAMESERVICES.name} lists only "
            f"{', '.join(known)}. Correct one of the two."
        )
    return local


def namenodes(configuration: Configuration, nameservice: str) -> tuple[NameNodeAddress, ...]:
    """Return all NameNodes of a nameservice in the configured order.

    Raises ``ConfigurationError`` when there are none, or when one has no address.
    """
    ids = namenode_ids(configuration, nameservice)
    return tuple(namenode_address(configuration, nameservice, one) for one in ids)


def namenode_ids(configuration: Configuration, nameservice: str) -> tuple[str, ...]:
    """Return the ids of a nameservice's NameNodes; raise ``ConfigurationError`` without any."""
    ids = configuration.get(keys.NAMENODES, nameservice=nameservice)
    if not ids and configuration.is_set(keys.NAMENODES, nameservice=nameservice):
        set_by = configuration.where(keys.NAMENODES, nameservice=nameservice)
        raise ConfigurationError(
            f"{set_by} is empty. List the NameNode ids there, for instance nn1,nn2."
        )
    if not ids:
        prefix = f"{keys.NAMENODES.name}."
        others = [name for name in sorted(configuration.settings) if name.startswith(prefix)]
        known = configuration.where(keys.NAMESERVICES)
        raise ConfigurationError(
            f"{prefix}{nameservice} is not set, but {', '.join(others)} is: either that key or "
            f"{nameservice!r} is misspelt ({known})."
            if others
            else f"{prefix}{nameservice} is not set. List the NameNode ids there, for instance "
            "nn1,nn2."
        )
    if len(set(ids)) != len(ids):
        raise ConfigurationError(
            f"{keys.NAMENODES.name}.{nameservice} is {','.join(ids)!r}: "
            "an id occurs twice. Give each NameNode its own."
        )
    return tuple(ids)


def namenode(configuration: Configuration, nameservice: str, name: str) -> NameNodeAddress:
    """Return one NameNode by its id; raise ``ConfigurationError`` listing the known ids."""
    known = namenodes(configuration, nameservice)
    for one in known:
        if one.namenode == name:
            return one
    raise ConfigurationError(
        f"There is no NameNode {name!r} in {nameservice}: {keys.NAMENODES.name}.{nameservice} "
        f"lists {', '.join(one.namenode for one in known)}."
    )


def local_namenode(configuration: Configuration) -> NameNodeAddress:
    """Return the NameNode of this machine: ``dfs.ha.namenode.id``, or the one whose host is ours.

    Raises ``ConfigurationError`` when no or more than one address is local.
    """
    nameservice = nameservice_of(configuration)
    name = configuration.get(keys.NAMENODE_ID)
    if name is not None:
        return namenode(configuration, nameservice, name)
    local = [one for one in namenodes(configuration, nameservice) if is_local(one.rpc.host)]
    if len(local) == 1:
        return local[0]
    found = ", ".join(one.namenode for one in local) or "none"
    raise ConfigurationError(
        f"Which NameNode of {nameservice} runs here cannot be told from the addresses (local: "
        f"{found}). Set {keys.NAMENODE_ID.name}, for instance with -D {keys.NAMENODE_ID.name}=nn1."
    )


def shared_edits(
    configuration: Configuration, nameservice: str, namenode: str | None = None
) -> JournalUri:
    """Return the quorum journal of a nameservice from ``dfs.namenode.shared.edits.dir``.

    Raises ``ConfigurationError`` for anything but one ``qjournal:`` address without doubles.
    """
    key = keys_journal.SHARED_EDITS
    text = configuration.require(key, nameservice=nameservice, namenode=namenode)
    where = configuration.where(key, nameservice=nameservice, namenode=namenode)
    scheme, _, rest = text.partition("://")
    authority, _, journal_id = rest.partition("/")
    if scheme != "qjournal" or not journal_id:
        raise ConfigurationError(f"{where} is {text!r}, but it must be {_SHAPE}.")
    if "/" in journal_id or journal_id in (".", ".."):
        raise ConfigurationError(
            f"{where} is {text!r}: the journal id {journal_id!r} must be one plain name."
        )
    try:
        nodes = tuple(
            host_port(default_port=JOURNAL_PORT)(part) for part in authority.split(";") if part
        )
    except BadValue as error:
        raise ConfigurationError(
            f"{where} is {text!r}: one of its nodes {error}. The whole must be {_SHAPE}."
        ) from error
    if not nodes or len(set(nodes)) != len(nodes):
        raise ConfigurationError(
            f"{where} is {text!r}: it must name each JournalNode once, as {_SHAPE}."
        )
    return JournalUri(nodes, journal_id)


def namenode_address(configuration: Configuration, nameservice: str, name: str) -> NameNodeAddress:
    """Return where one NameNode listens; raise ``ConfigurationError`` if it has no RPC address."""
    scope = {"nameservice": nameservice, "namenode": name}
    rpc = configuration.get(keys.NAMENODE_RPC, **scope)
    if rpc is None:
        listed = configuration.where(keys.NAMENODES, nameservice=nameservice)
        raise ConfigurationError(
            f"{listed} lists {name}, but {keys.NAMENODE_RPC.name}.{nameservice}.{name} is not set. "
            f"Add it to hdfs-site.xml, or take {name} out of the list."
        )
    service = configuration.get(keys.NAMENODE_SERVICE_RPC, **scope) or rpc
    http = configuration.get(keys.NAMENODE_HTTP, **scope)
    return NameNodeAddress(
        nameservice=nameservice,
        namenode=name,
        rpc=rpc,
        service=service,
        http=HostPort(rpc.host, http.port) if http.host in _WILDCARDS else http,
        zkfc=HostPort(service.host, configuration.get(keys.ZKFC_PORT, **scope)),
        zkfc_http=_zkfc_page(configuration, service.host, scope),
        lifeline=configuration.get(keys.NAMENODE_LIFELINE_RPC, **scope) or service,
    )


def lets_other_hosts_in(configuration: Configuration) -> bool:
    """Return whether daemons may serve other machines: the mode allows it, or certificates do."""
    allowed = configuration.get(SECURITY_MODE) is not Mode.AUTO
    return allowed or configuration.get(TLS_DIR) is not None


def _zkfc_page(configuration: Configuration, host: str, scope: dict[str, str]) -> HostPort:
    """Return where the ZKFC's page is: where no address is set, with its RPC or on loopback."""
    page = configuration.get(keys.ZKFC_HTTP, **scope)
    chosen = configuration.is_set(keys.ZKFC_HTTP, **scope) or not lets_other_hosts_in(configuration)
    return page if chosen else HostPort(host, page.port)


def is_local(host: str) -> bool:
    """Return whether an address of that host belongs to this machine: only then can it be bound."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    for family, kind, protocol, _name, address in found:
        with suppress(OSError), socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
            return True
    return False
