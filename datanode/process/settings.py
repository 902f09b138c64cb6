"""A DataNode's settings from Hadoop's keys."""

import re
import socket
from dataclasses import dataclass
from typing import Final

from datanode.namenodes.actor import Rhythm
from datanode.namenodes.claim import NameNodeId
from datanode.replicas.scanner import ScanRhythm
from datanode.replicas.volume import DataDirectory
from datanode.wire.peer import TransferLimits
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import datanode as keys
from ha.conf.keys.key import Key
from ha.conf.topology import HostPort, namenodes, nameservice_of
from ha.daemon.exposure import Door
from hadoop.location import path_of
from hadoop.proto.hdfs_types_pb2 import StorageTypeProto

_LOOPBACK: Final = "127.0.0.1"
_WILDCARDS: Final = ("0.0.0.0", "::")
_TYPED: Final = re.compile(r"(?:\[([A-Za-z_]+)\])?(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataNodeSettings:
    """All that is configured of one DataNode."""

    directories: tuple[DataDirectory, ...]
    namenodes: dict[NameNodeId, HostPort]
    data: HostPort
    rpc: HostPort
    http: HostPort
    host_name: str
    kept_free: int
    tolerated: int
    rhythm: Rhythm
    limits: TransferLimits
    scan: ScanRhythm = ScanRhythm()

    def doors(self) -> list[Door]:
        return [
            Door(key.name, address.host, address.port)
            for key, address in (
                (keys.DATA, self.data), (keys.RPC, self.rpc), (keys.HTTP, self.http)
            )
        ]  # fmt: skip


def read_settings(conf: Configuration) -> DataNodeSettings:
    """Return the DataNode's settings.

    Where no address is configured we listen on the loopback interface only, not on all interfaces
    as Hadoop does.

    Raises:
        ConfigurationError: for what cannot be read, or is not done here.
    """
    if conf.get(keys.BLOCK_TOKENS):
        raise ConfigurationError(
            f"{keys.BLOCK_TOKENS.name} is true, but nnha's DataNode knows no block tokens: it "
            "would serve whoever asks. Set it to false for all daemons if that is acceptable, or "
            "use Hadoop's DataNodes."
        )
    directories = tuple(_directory(entry) for entry in conf.get(keys.DATA_DIR))
    if not directories:
        raise ConfigurationError(f"{keys.DATA_DIR.name} names no directory.")
    nameservice = nameservice_of(conf)
    data = _address(conf, keys.DATA)
    return DataNodeSettings(
        directories=directories,
        namenodes={NameNodeId(one.namenode): one.service for one in namenodes(conf, nameservice)},
        data=data,
        rpc=_address(conf, keys.RPC),
        http=_address(conf, keys.HTTP),
        host_name=conf.get(keys.HOST_NAME) or _name_of(data.host),
        kept_free=conf.get(keys.DU_RESERVED),
        tolerated=conf.get(keys.FAILED_VOLUMES_TOLERATED),
        rhythm=Rhythm(
            conf.get(keys.HEARTBEAT_INTERVAL),
            conf.get(keys.REPORT_INTERVAL),
            conf.get(keys.REPORT_SPLIT),
        ),
        limits=TransferLimits(
            keep_alive_seconds=conf.get(keys.KEEP_ALIVE),
            max_connections=conf.get(keys.MAX_CONNECTIONS),
        ),
        scan=_scan_rhythm(conf.get(keys.SCAN_BANDWIDTH), conf.get(keys.SCAN_PERIOD_HOURS)),
    )


def _scan_rhythm(bytes_per_second: int, hours: int) -> ScanRhythm:
    usual = ScanRhythm()
    if bytes_per_second == 0 or hours < 0:
        return ScanRhythm(bytes_per_second or usual.bytes_per_second, period_seconds=-1)
    return ScanRhythm(bytes_per_second, hours * 3600.0 or usual.period_seconds)


def _directory(entry: str) -> DataDirectory:
    found = _TYPED.fullmatch(entry)
    types = set(StorageTypeProto.keys())
    if found is None or (kind := (found[1] or "DISK").upper()) not in types:
        raise ConfigurationError(
            f"{keys.DATA_DIR.name} names {entry!r}: expected a path, file:///path or "
            "[SSD]file:///path."
        )
    try:
        return DataDirectory(path_of(found[2]), kind)
    except ValueError as problem:
        raise ConfigurationError(f"{keys.DATA_DIR.name}: {problem}") from problem


def _name_of(host: str) -> str:
    """Return the name of this machine where we listen on all interfaces: clients receive it."""
    return socket.gethostname() if host in _WILDCARDS else host


def _address(conf: Configuration, key: Key[HostPort]) -> HostPort:
    address = conf.get(key)
    return address if conf.is_set(key) else HostPort(_LOOPBACK, address.port)
