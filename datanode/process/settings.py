"""A DataNode's settings from Hadoop's keys."""

import re
import socket
from typing import Final

from datanode.namenodes.actor import Rhythm
from datanode.namenodes.claim import NameNodeId
from datanode.replicas.locked_pages import most_lockable
from datanode.replicas.scanner import ScanRhythm
from datanode.replicas.volume import DataDirectory
from datanode.transfers.balance_throttle import MoveRules
from datanode.transfers.block_access import BlockAccess
from ha.conf.configuration import Configuration
from ha.conf.data_encryption import data_algorithm
from ha.conf.errors import ConfigurationError
from ha.conf.keys import datanode as keys
from ha.conf.keys.kerberos import CIPHER_KEY_BITS, CIPHER_SUITES, DATA_PROTECTION
from ha.conf.keys.security import AUTHENTICATION, Mode
from ha.conf.listening import Door, is_loopback, required_door
from ha.conf.topology import HostPort, namenodes, nameservice_of
from ha.daemon.end_code import ONLY_A_PERSON
from ha.daemon.exposure import ADVICE, OPEN_TO_STRANGERS
from ha.daemon.process import ExitWith
from ha.record import dataclass
from ha.security.access_control import AccessControl
from ha.security.sasl.mechanism import Protection
from hadoop.blocks import PoolId
from hadoop.location import path_of
from hadoop.proto.hdfs_types_pb2 import StorageTypeProto
from hadoop.wire.peer import TransferLimits

LIVE_KEYS: Final = (
    keys.HEARTBEAT_INTERVAL, keys.REPORT_INTERVAL, keys.REPORT_SPLIT, keys.CACHE_REPORT_INTERVAL,
    keys.KEEP_ALIVE, keys.MAX_CONNECTIONS, keys.FAILED_VOLUMES_TOLERATED,
)  # fmt: skip
"""What ``DataNode.use`` takes over while it runs."""
_WILDCARDS: Final = ("0.0.0.0", "::")
_TYPED: Final = re.compile(r"(?:\[([A-Za-z_]+)\])?(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataNodeSettings:
    """All that is configured of one DataNode."""

    directories: tuple[DataDirectory, ...]
    namenodes: dict[NameNodeId, HostPort]
    data: Door
    rpc: Door
    http: Door
    host_name: str
    kept_free: int
    tolerated: int
    locked_memory: int = 0
    block_tokens: bool = True
    protections: tuple[Protection, ...] = ()
    key_bits: int = 0
    algorithm: str | None = None
    rhythm: Rhythm
    limits: TransferLimits
    scan: ScanRhythm = ScanRhythm()
    moves: MoveRules = MoveRules()

    def doors(self) -> list[Door]:
        return [self.data, self.rpc, self.http]


def read_settings(conf: Configuration) -> DataNodeSettings:
    """Return the DataNode's settings.

    Raises:
        ConfigurationError: for what cannot be read, or is not done here.
    """
    directories = tuple(_directory(entry) for entry in conf.get(keys.DATA_DIR))
    if not directories:
        raise ConfigurationError(f"{keys.DATA_DIR.name} names no directory.")
    nameservice = nameservice_of(conf)
    data, algorithm = required_door(conf, keys.DATA), data_algorithm(conf)
    return DataNodeSettings(
        directories=directories,
        namenodes={NameNodeId(one.namenode): one.service for one in namenodes(conf, nameservice)},
        data=data,
        rpc=required_door(conf, keys.RPC),
        http=required_door(conf, keys.HTTP),
        host_name=conf.get(keys.HOST_NAME) or _name_of(data.host),
        kept_free=conf.get(keys.DU_RESERVED),
        tolerated=conf.get(keys.FAILED_VOLUMES_TOLERATED),
        locked_memory=conf.get(keys.LOCKED_MEMORY),
        block_tokens=conf.get(keys.BLOCK_TOKENS) is not False,
        protections=_protections(conf) if algorithm is None else (),
        key_bits=conf.get(CIPHER_KEY_BITS) * (conf.get(CIPHER_SUITES) is not None),
        algorithm=algorithm,
        rhythm=Rhythm(
            conf.get(keys.HEARTBEAT_INTERVAL),
            conf.get(keys.REPORT_INTERVAL),
            conf.get(keys.REPORT_SPLIT),
            conf.get(keys.CACHE_REPORT_INTERVAL),
        ),
        limits=TransferLimits(
            keep_alive_seconds=conf.get(keys.KEEP_ALIVE),
            max_connections=conf.get(keys.MAX_CONNECTIONS),
        ),
        moves=MoveRules(
            conf.get(keys.BALANCE_BANDWIDTH),
            conf.get(keys.BALANCE_MOVES),
            conf.get(keys.BLOCK_PINNING),
        ),
        scan=_scan_rhythm(conf.get(keys.SCAN_BANDWIDTH), conf.get(keys.SCAN_PERIOD_HOURS)),
    )


def block_access(
    settings: DataNodeSettings, callers: AccessControl | None, pool: PoolId
) -> BlockAccess:
    """Return what asks for block tokens; in strict nothing is served to the network without."""
    strict = callers is not None and callers.policy.mode is Mode.STRICT
    needed = ""
    if strict and not is_loopback(settings.data.host, unknown=False):
        needed = (
            f"in strict mode {settings.data.address} serves nothing without them. Set "
            f"{keys.BLOCK_TOKENS.name} to true at every NameNode"
        )
    return BlockAccess(
        pool, wanted=settings.block_tokens, needed=needed, protections=settings.protections,
        key_bits=settings.key_bits, algorithm=settings.algorithm,
    )  # fmt: skip


def _protections(conf: Configuration) -> tuple[Protection, ...]:
    """Return what protects connections to this DataNode, of which each caller chooses one."""
    found = conf.get(DATA_PROTECTION) or ()
    simple = conf.get(AUTHENTICATION).lower() != "kerberos"
    if found and (simple or conf.get(keys.BLOCK_TOKENS) is False):
        lacking = f"{AUTHENTICATION.name}=simple" if simple else f"{keys.BLOCK_TOKENS.name}=false"
        raise ConfigurationError(
            f"{conf.where(DATA_PROTECTION)} is {','.join(found)}, but with {lacking} nothing would "
            "be protected: Hadoop's clients have the handshake with Kerberos alone, and its "
            "password is a block token's. → Set both, or unset it."
        )
    return tuple(map(Protection, found))


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


def refuse_hidden(settings: DataNodeSettings) -> None:
    """Refuse to register at NameNodes on other hosts with addresses that only this one reaches.

    A NameNode would count such a DataNode as live, and send it clients that never get through.

    Raises:
        ExitWith: 78, with what to set.
    """
    away = [
        f"{who} at {address}"
        for who, address in settings.namenodes.items()
        if not is_loopback(address.host, unknown=False)
    ]
    needed = (settings.data, settings.rpc)
    hidden = [door for door in needed if is_loopback(door.host, unknown=False)]
    if away and hidden:
        named = " and ".join(f"{door} ({door.why})" for door in hidden)
        raise ExitWith(
            OPEN_TO_STRANGERS,
            f"refused to start: only this machine reaches {named}, and the NameNode is on "
            f"the network ({', '.join(away)}): it would send clients here that never get "
            f"through. Nothing was changed. → {ADVICE}.",
        )


def refuse_unlockable(settings: DataNodeSettings) -> None:
    """Refuse to cache more than the system lets this process lock in memory, as Hadoop does.

    Raises:
        ExitWith: 78, with what to set.
    """
    wanted, most = settings.locked_memory, most_lockable()
    if wanted > most:
        raise ExitWith(
            ONLY_A_PERSON,
            f"{keys.LOCKED_MEMORY.name} is {wanted} bytes, and this process may lock {most} "
            f"(RLIMIT_MEMLOCK): it did not start, and nothing was changed. → Raise the limit, by "
            f"LimitMEMLOCK={wanted} in the unit of systemd or memlock in limits.conf (ulimit -l "
            f"shows KiB), or set {keys.LOCKED_MEMORY.name} to {most} or less.",
        )
