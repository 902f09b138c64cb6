"""Every fault of a configuration that its daemons would meet, each with file and key."""

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from fencing.model import ShellMethod
from ha.conf import topology
from ha.conf.configuration import Configuration, nodes_of
from ha.conf.errors import ConfigurationError
from ha.conf.expansion import VARIABLE
from ha.conf.hazards import Daemon, Danger, Hazard, dangers
from ha.conf.keys import cluster as keys
from ha.conf.keys.table import KEYS
from ha.conf.spelling import split_suffix
from ha.zkfc.settings.settings import automatic_failover, fencing_plan

LOOPBACK = ("127.", "localhost", "::1")


def problems_of(configuration: Configuration) -> list[str]:
    """Return every key, address and fencing method that the daemons could not use."""
    found: list[str] = []
    for key in KEYS.values():
        _note(found, partial(configuration.get, key))
    with suppress(ConfigurationError):  # a value that cannot be read is reported already
        found += map(danger_message, dangers(configuration))
    try:
        nameservice = topology.nameservice_of(configuration)
        ids = topology.namenode_ids(configuration, nameservice)
    except ConfigurationError as error:
        return list(dict.fromkeys([*found, str(error)]))
    nodes: list[topology.NameNodeAddress] = []
    for name in ids:
        where = {"nameservice": nameservice, "namenode": name}
        for key in KEYS.values():
            _note(found, partial(configuration.get, key, **where))
        with suppress(ConfigurationError):
            nodes.append(topology.namenode_address(configuration, nameservice, name))
        _note(found, partial(topology.namenode_address, configuration, nameservice, name))
        _note(found, partial(topology.shared_edits, configuration, nameservice, name))
        _note(found, partial(_fencing, configuration, nameservice, name, found))
        _note(found, partial(_fenced_at_all, configuration, nameservice, name))
        _note(found, partial(_elected_at_all, configuration, nameservice, name))
    found += _address_conflicts(nodes, _journal(configuration, nameservice))
    return list(dict.fromkeys(found))


def variables_left(configuration: Configuration) -> Iterator[str]:
    """Yield each value that is used with an unexpanded ``${variable}`` in it.

    Scripts are left out: there the variable may mean something.
    """
    nodes = nodes_of(configuration)
    for name, setting in sorted(configuration.settings.items()):
        base = split_suffix(name, nodes)[0]
        if base not in KEYS or base == keys.FENCING_METHODS.name:
            continue
        with suppress(ConfigurationError):  # reported already
            left = VARIABLE.search(configuration.raw(name) or "")
            if left is not None:
                yield (
                    f"{setting.origin}: {name}: {left[0]} stays in it, as that is not set or "
                    "refers to itself"
                )


def danger_message(danger: Danger) -> str:
    """Describe a setting that keeps daemons from starting."""
    stopped = blocked_daemons_text(danger.hazard)
    return danger.told(f"{stopped[0].upper()}{stopped[1:]}")


def blocked_daemons_text(hazard: Hazard) -> str:
    """Return e.g. ``namenode and zkfc do not start``."""
    daemons = [daemon for daemon in Daemon if daemon in hazard.daemons]
    *others, last = daemons
    named = f"{', '.join(others)} and {last}" if others else last
    return f"{named} {'does' if len(daemons) == 1 else 'do'} not start"


def _note(problems: list[str], read: Callable[[], object]) -> None:
    try:
        read()
    except ConfigurationError as error:
        problems.append(str(error))


def _journal(configuration: Configuration, nameservice: str) -> topology.JournalUri | None:
    try:
        return topology.shared_edits(configuration, nameservice)
    except ConfigurationError:
        return None


def _fencing(configuration: Configuration, nameservice: str, name: str, found: list[str]) -> None:
    plan = fencing_plan(configuration, nameservice, name)
    key = keys.FENCING_METHODS
    scope = {"nameservice": nameservice, "namenode": name}
    for method in plan.methods:
        program = missing_program(method.command) if isinstance(method, ShellMethod) else ""
        if program:
            found.append(
                f"{configuration.where(key, **scope)}: {method} starts {program}, and there "
                "is no such program on this machine. Put it on every NameNode host."
            )


def _fenced_at_all(configuration: Configuration, nameservice: str, name: str) -> None:
    if configuration.get(keys.FENCING_METHODS, nameservice=nameservice, namenode=name):
        return
    if automatic_failover(configuration, nameservice):
        raise ConfigurationError(
            f"{name} has no fencing method: set {keys.FENCING_METHODS.name}; without one the old "
            "active cannot be fenced before a takeover"
        )


def _elected_at_all(configuration: Configuration, nameservice: str, name: str) -> None:
    if configuration.get(keys.ZOOKEEPER_QUORUM, nameservice=nameservice, namenode=name):
        return
    if automatic_failover(configuration, nameservice):
        raise ConfigurationError(
            f"{keys.ZOOKEEPER_QUORUM.name} is not set: no ZKFC starts without ZooKeeper; name the "
            "ensemble as host:port,host:port,..."
        )


def missing_program(command: str) -> str:
    """Return the path of the program that a command begins with, if there is no such file."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    program = words[0] if words else ""
    if "/" not in program or "$" in program or "=" in program:
        return ""
    return "" if Path(program).is_file() else program


def _address_conflicts(
    nodes: list[topology.NameNodeAddress], journal: topology.JournalUri | None
) -> Iterator[str]:
    """Report two daemons on one address: only the first of them starts."""
    users: dict[tuple[str, topology.HostPort], dict[str, list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for node in nodes:
        for key, address in _addresses(node):
            # A loopback address is each host's own.
            host = node.rpc.host if address.host.startswith(LOOPBACK) else ""
            daemon = "ZKFC" if "zkfc" in key else "NameNode"
            users[host, address][f"the {daemon} of {node.namenode}"].append(key)
    for address in () if journal is None else journal.nodes:
        users["", address]["a JournalNode"].append("dfs.namenode.shared.edits.dir")
    for (_, address), by_daemon in users.items():
        if len(by_daemon) > 1:
            told = " and ".join(
                f"{daemon} ({', '.join(named)})" for daemon, named in by_daemon.items()
            )
            yield f"{address} is the address of {told}: only one of them can listen there."


def _addresses(node: topology.NameNodeAddress) -> Iterator[tuple[str, topology.HostPort]]:
    suffix = f"{node.nameservice}.{node.namenode}"
    yield f"{keys.NAMENODE_RPC.name}.{suffix}", node.rpc
    if node.service != node.rpc:
        yield f"{keys.NAMENODE_SERVICE_RPC.name}.{suffix}", node.service
    if node.lifeline not in (node.rpc, node.service):
        yield f"{keys.NAMENODE_LIFELINE_RPC.name}.{suffix}", node.lifeline
    yield f"{keys.NAMENODE_HTTP.name}.{suffix}", node.http
    yield f"{keys.ZKFC_PORT.name}.{suffix}", node.zkfc
    if node.zkfc_http.port:
        yield f"{keys.ZKFC_HTTP.name}.{suffix}", node.zkfc_http
