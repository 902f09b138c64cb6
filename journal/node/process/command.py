"""``nnha journalnode``: run a JournalNode in the foreground."""

import asyncio
import os
import sys
from pathlib import Path

import click

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys import journal as keys
from ha.conf.keys.cluster import NAMESERVICES
from ha.conf.keys.namenode import IMAGE_TRANSFER_BANDWIDTH, TAIL_IN_PROGRESS
from ha.conf.keys.security import HTTP_POLICY, https_only
from ha.conf.keys.units import Unset
from ha.conf.listening import Door, door_of, required_door
from ha.conf.topology import HostPort
from ha.console.log_options import log_options
from ha.console.options import configuration
from ha.daemon.end_code import end_code
from ha.daemon.exposure import check_exposure
from ha.daemon.facts import publish_facts
from ha.daemon.logs import LogOptions, configure_logging
from ha.daemon.notify import SERVICE
from ha.daemon.private_files import warn_of_open_folders
from ha.daemon.process import ExitWith, run_daemon
from ha.daemon.start_check import check_start
from journal.errors import StorageFailed
from journal.node.node import JournalNode
from journal.node.peers import configured_nodes, configured_peers, named_journals
from journal.node.process.daemon import JournalNodeDaemon, PortTaken
from journal.node.settings import NodeSettings

WRITERS_SWITCH_SECONDS = 0.0005
"""The longest wait for Python's lock (GIL) of a thread of a lane or of Java after its sync.

Compared with Python's 5 ms while the event loop rendered /metrics or served manifests, in one
process on two cores under other load: a batch's p50 3.2 -> 2.7 ms, p90 8.8 -> 7.9, p99 17 -> 15
(medians of 8 runs of 1,600 batches each); no change while the loop is idle.
"""
SHOWN_EVERY_SECONDS = 1.0
_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@click.command()
@configuration
@log_options
def journalnode(conf_dir: Path | None, overrides: tuple[str, ...], log_as: LogOptions) -> None:
    """Keep edits for NameNodes until SIGTERM."""
    configure_logging("journalnode", level=log_as.level, form=log_as.form)

    async def main(stop: asyncio.Event) -> None:
        os.umask(0o077)
        try:
            conf = load_configuration(conf_dir, overrides)
            check_start(conf, Daemon.JOURNALNODE)
            settings = read_settings(conf)
            access = check_exposure(conf, Daemon.JOURNALNODE, doors(settings))
            publish_facts("journalnode", conf)
            warn_of_open_folders(settings.all_folders(), allowed=settings.folder_mode)
            if (settings.lane_host, settings.hadoop_host) != (None, None):
                sys.setswitchinterval(WRITERS_SWITCH_SECONDS)
            async with JournalNodeDaemon(settings, access) as daemon:
                SERVICE.ready()
                await _serve(daemon.node, stop)
        except (ConfigurationError, StorageFailed, PortTaken) as failure:
            raise ExitWith(end_code(failure), str(failure)) from failure

    sys.exit(run_daemon("journalnode", main, busy=True))


async def _serve(node: JournalNode, stop: asyncio.Event) -> None:
    """Wait until ``stop`` is set; until then show the promised epochs in systemd's status line."""
    showing = asyncio.create_task(_show(node), name="systemd's status")
    try:
        await stop.wait()
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


async def _show(node: JournalNode) -> None:
    shown = ""
    while SERVICE.address:
        epochs = (f"{one.journal_id}: epoch {one.state.promised}" for one in node.owners())
        text = "; ".join(epochs) or "no journal is formatted yet"
        if text != shown:
            SERVICE.status(text)
            shown = text
        await asyncio.sleep(SHOWN_EVERY_SECONDS)


def read_settings(conf: Configuration) -> NodeSettings:
    """Return the node's settings; raises ConfigurationError if a value cannot be used."""
    https = https_only(conf.get(HTTP_POLICY))
    http = required_door(conf, keys.HTTPS if https else keys.HTTP)
    rpc = required_door(conf, keys.RPC)
    hadoop = door_of(conf, keys.HADOOP_RPC)
    folder = Path(conf.get(keys.EDITS_DIR))
    folders = {
        nameservice: Path(conf.get(keys.EDITS_DIR, nameservice=nameservice))
        for nameservice in conf.get(NAMESERVICES)
    }
    mode = conf.get(keys.EDITS_DIR_PERM)
    try:
        folder_mode = int(mode, 8)
    except ValueError as failure:
        raise ConfigurationError(
            f"{keys.EDITS_DIR_PERM.name}={mode!r} is not an octal mode such as 700."
        ) from failure
    configured = conf.raw(keys.EDITS_DIR.name) is not None
    if not configured and folders:
        # Each nameservice has a folder of its own, so the default folder must not be created.
        folder = next(iter(folders.values()))
    lane_host, lane_port = _lane_address(conf, rpc.host)
    return NodeSettings(
        folder=folder,
        folders=folders,
        folder_mode=folder_mode,
        rpc_host=rpc.host,
        rpc_port=rpc.port,
        addresses_because={"rpc": rpc.why, "http": http.why},
        hadoop_host=hadoop.host if hadoop else None,
        hadoop_port=hadoop.port if hadoop else 0,
        lane_host=lane_host,
        lane_port=lane_port,
        http_host=http.host,
        http_port=http.port,
        https=https,
        edits_cache_bytes=edits_cache_bytes(conf),
        peers=configured_peers(conf),
        nodes=configured_nodes(conf),
        journal_ids=named_journals(conf),
        http_port_of_peers=http.port,
        hadoop_port_of_peers=hadoop.port if hadoop else 0,
        max_read_lease_seconds=conf.get(keys.MAX_READ_LEASE),
        claim_seconds=max(conf.get(keys.NEW_EPOCH_TIMEOUT), conf.get(keys.MAX_READ_LEASE)),
        disk_warn_free_bytes=conf.get(keys.DISK_WARN_FREE),
        serve_bytes_per_second=_serving_rate(conf),
        scrub_interval_seconds=conf.get(keys.SCRUB_INTERVAL),
        scrub_bytes_per_second=conf.get(keys.SCRUB_BANDWIDTH),
        sync_interval_seconds=conf.get(keys.SYNC_INTERVAL),
        sync_stall_seconds=conf.get(keys.EDIT_TRANSFER_TIMEOUT),
        sync_bytes_per_second=conf.get(keys.EDIT_TRANSFER_BANDWIDTH),
    )


def doors(settings: NodeSettings) -> list[Door]:
    """Return the addresses that the node listens on, each with its configuration key."""
    because = settings.addresses_because
    found = [
        Door(keys.RPC.name, settings.rpc_host, settings.rpc_port, because.get("rpc", "")),
        Door(
            settings.http_key.name, settings.http_host, settings.http_port, because.get("http", "")
        ),
    ]
    if settings.hadoop_host is not None:
        found.append(Door(keys.HADOOP_RPC.name, settings.hadoop_host, settings.hadoop_port))
    if settings.lane_host is not None:
        found.append(Door(keys.WRITE_LANES.name, settings.lane_host, settings.lane_port))
    return found


def edits_cache_bytes(conf: Configuration) -> int:
    """Return the size of each journal's edits cache in bytes; 0 without in-progress tailing.

    As in Hadoop, a size in bytes takes precedence over a fraction, which is one of
    ``memory_limit``.  If neither is set, the default size in bytes is used: there is no Java heap
    of which Hadoop's default fraction could be taken.
    """
    if not conf.get(TAIL_IN_PROGRESS):
        return 0
    if conf.raw(keys.CACHE_SIZE.name) is not None or conf.raw(keys.CACHE_FRACTION.name) is None:
        wanted = conf.get(keys.CACHE_SIZE)
        if wanted <= 0:
            raise ConfigurationError(f"{keys.CACHE_SIZE.name}={wanted} must be above 0.")
        return wanted
    part = conf.get(keys.CACHE_FRACTION)
    if not 0 < part < 1:
        raise ConfigurationError(f"{keys.CACHE_FRACTION.name}={part} must lie between 0 and 1.")
    return max(1, int(part * memory_limit()))


def memory_limit() -> int:
    """Return this process's memory limit in bytes: the container's (cgroup) or the machine's."""
    everything = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in _CONTAINER_LIMITS:
        try:
            return min(everything, int(place.read_text()))
        except (OSError, ValueError):
            continue  # no such file, or "max"
    return everything


def _serving_rate(conf: Configuration) -> int:
    """Return the limit for serving segments in bytes per second; 0, no limit, if it is not set.

    Hadoop's default of this key is meant for images; a segment recovery, which waits for the
    download, is slowed down only if the operator sets the key.
    """
    said = conf.raw(IMAGE_TRANSFER_BANDWIDTH.name) is not None
    return conf.get(IMAGE_TRANSFER_BANDWIDTH) if said else 0


def _lane_address(conf: Configuration, rpc_host: str) -> tuple[str | None, int]:
    """Return host and port of the write lanes; by default gRPC's host and 0, any free port."""
    match conf.get(keys.WRITE_LANES):
        case HostPort() as said:
            return said.host, said.port
        case Unset.OFF:
            return None, 0
        case Unset.CHOSEN:
            return rpc_host, 0
