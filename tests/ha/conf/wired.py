"""What all daemons make of a configuration: each setting by a name of its own, and its value."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from inspect import getclosurevars
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

from datanode.process.settings import read_settings as datanode_settings
from datanode.webhdfs.route import data_routes
from files.cli.changes import umask
from ha.cli.operate.handover import patience_seconds
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys.security import AUDIT_FILE
from ha.conf.topology import local_namenode
from ha.daemon.exposure import check_exposure
from ha.daemon.process import ExitWith
from ha.security.kerberos import settings as kerberos
from ha.security.kerberos.auth_to_local import parse_rules
from ha.zkfc.settings.settings import automatic_failover, fencing_plan, zkfc_settings
from journal.links.configuration import reader_settings, writer_link, writer_settings
from journal.model import NamespaceInfo
from journal.node.process.command import read_settings as journalnode_settings
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process import datanodes, listeners
from namenode_sim.process.client_settings import client_settings, groups_of
from namenode_sim.process.daemon import ha_service, park_timeout, retry_cache
from namenode_sim.process.image_routes import image_limits, image_routes
from namenode_sim.process.loading import Loading
from namenode_sim.process.peer_service import checkpoint_rules, upload_settings
from namenode_sim.startup import identity
from spark.ends.sources.cluster import Cluster as CheckpointedCluster
from spark.service.command import rules_of
from tests.log_lines import silenced

INFO = NamespaceInfo(-63, 7, "CID-1", 1, "BP-1")
LEFT_OUT = {"addresses_because", "environment", "why"}
"""Fields that say where a setting was found; and every setting, for scripts that fence."""


def _place(conf: Configuration) -> identity.NameNodeIdentity:
    return identity.NameNodeIdentity.from_configuration(conf)


def _directories(conf: Configuration) -> object:
    own = local_namenode(conf)
    return {
        "names": identity.name_directories(conf, own),
        "edits": identity.edits_directories(conf, own),
        "copies": identity.copy_directories(conf, own),
        "required": identity.required_directories(conf, own),
        "checked": identity.checked_volumes(conf),
    }


def _cluster(conf: Configuration) -> object:
    made = datanodes.cluster_of(conf, INFO, Namespace.empty("root"), "nn1")
    keys, counts = made.block_keys, vars(made.blocks)["_counts"]
    return {
        "stale_seconds": made.stale_seconds,
        "tokens_may_end": made.tokens_may_end,
        "minimum": counts.minimum,
        "safe_minimum": counts.safe_minimum,
        "safe_mode": made.rules,
        "block_keys": None if keys is None else (keys.interval_ms, keys.lifetime_ms),
    }


def _access(conf: Configuration) -> object:
    unwritten = conf.with_overrides([f"{AUDIT_FILE.name}="])  # each such file has a thread
    with silenced():
        made = check_exposure(unwritten, Daemon.ZKFC, [], kernel_reports_uids=lambda: True)
    policy = made.policy
    return {
        "mode": policy.mode,
        "hosts": frozenset(made.hosts),
        "simple_clients": policy.simple_clients,
        "namenodes": policy.namenodes,
    }


def _login(conf: Configuration) -> object:
    own = local_namenode(conf)
    scoped = conf.scoped(own.nameservice, own.namenode)
    return kerberos.login(scoped, parse_rules("DEFAULT", "hadoop", "R"))


def _receiver(conf: Configuration) -> object:
    """Return the rules of the receiver of images, which nothing here sends."""
    inodes = SimpleNamespace(tree=SimpleNamespace(inodes=range(10)))
    nothing: Any = SimpleNamespace(namespace_info=INFO, namespace=inodes)
    handler: Any = image_routes(conf, _place(conf), nothing, nothing)[-1].handler
    made = vars(handler.__self__)
    rules = {name: made[f"_{name}"] for name in ("recent_seconds", "edits", "stall_seconds")}
    return rules | {"fewest_inodes": made["_recipient"].fewest_inodes()}


def _session(conf: Configuration) -> Any:  # noqa: ANN401 - only what is asked of one
    return SimpleNamespace(place=SimpleNamespace(configuration=conf))


def _data_routes(conf: Configuration) -> object:
    routes = data_routes(conf, None)
    if not routes:
        return "none"
    handler: Any = routes[0].handler
    return {"known": handler.__self__.known, "user_pattern": handler.__self__.user_pattern}


def _groups(conf: Configuration) -> object:
    made = vars(groups_of(conf))
    return {name: made[f"_{name}"] for name in ("overrides", "lifetime_seconds")}


READERS: Mapping[str, Callable[[Configuration], object]] = {
    "access": _access,
    "automatic failover": lambda conf: automatic_failover(conf, "ns1"),
    "checkpoints": lambda conf: rules_of(conf, CheckpointedCluster.from_configuration(conf)),
    "checkpoints' cluster": CheckpointedCluster.from_configuration,
    "datanode": datanode_settings,
    "datanode's files": _data_routes,
    "fencing": lambda conf: fencing_plan(conf, "ns1", "nn1"),
    "hand-over": patience_seconds,
    "journalnode": journalnode_settings,
    "kerberos services": lambda conf: kerberos.services(conf, "R"),
    "kerberos login": _login,
    "files' umask": lambda conf: umask(_session(conf)),
    "namenode": _place,
    "namenode's clients": client_settings,
    "namenode's cluster": _cluster,
    "namenode's directories": _directories,
    "namenode's doors": lambda conf: listeners.doors(conf, _place(conf)),
    "namenode's face": lambda conf: ha_service(conf, _place(conf), Loading("nn1")),
    "namenode's frames": listeners.frame_budget,
    "namenode's gate": lambda conf: park_timeout(conf, "ns1", "nn1"),
    "namenode's groups": _groups,
    "namenode's hosts": datanodes.host_files,
    "namenode's images": image_limits,
    "namenode's images received": _receiver,
    "namenode's keeper": lambda conf: datanodes.keeper_rules(conf, INFO),
    "namenode's racks": datanodes.rack_source,
    "namenode's retry cache": retry_cache,
    "namenode's rpc": listeners.rpc_limits,
    "namenode's storage": identity.storage_settings,
    "policy": kerberos.service_policy,
    "reader": reader_settings,
    "standby's checkpoints": lambda conf: checkpoint_rules(conf, local_namenode(conf)),
    "standby's images sent": upload_settings,
    "writer": writer_settings,
    "writer's link": lambda conf: writer_link(conf, [("127.0.0.1", 1)]).__name__,
    "zkfc": zkfc_settings,
}


def made_of(conf: Configuration) -> dict[str, dict[str, str]]:
    """Return what each reader makes of it, flat; one that refuses says only that it does."""
    found = dict[str, dict[str, str]]()
    for name, read in READERS.items():
        try:
            found[name] = dict(_flat(name, read(conf)))
        except (ConfigurationError, ExitWith) as refusal:
            found[name] = {name: f"refused by {type(refusal).__name__}"}
    return found


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever there is
    if name.rpartition(".")[2] in LEFT_OUT:
        return
    if isinstance(value, set | frozenset):
        value = ", ".join(sorted(map(str, value)))
    parts = list(_parts(value))
    for part, one in parts:
        yield from _flat(f"{name}{part}", one)
    if not parts:
        yield name, f"{value:.10g}" if isinstance(value, float) else str(value)


def _parts(value: Any) -> Iterator[tuple[str, object]]:  # noqa: ANN401
    """Yield what a value consists of; nothing: it is shown as it is."""
    match value:
        case Enum() | Path() | type():
            return
        case Mapping():
            yield from ((f"[{key}]", value[key]) for key in sorted(value, key=str))
        case list() | tuple():
            yield from ((f"[{number}]", one) for number, one in enumerate(value))
        case FunctionType():
            yield from ((f"({name})", one) for name, one in getclosurevars(value)[0].items())
        case _ if is_dataclass(value) or not callable(value):
            yield from ((f".{name.lstrip('_')}", getattr(value, name)) for name in _names(value))
        case _:
            return


def _names(value: Any) -> Iterable[str]:  # noqa: ANN401
    if is_dataclass(value):
        return [one.name for one in fields(value) if not one.name.startswith("_")]
    names: Iterable[str] = getattr(value, "__slots__", ()) or getattr(value, "__dict__", ())
    return names
