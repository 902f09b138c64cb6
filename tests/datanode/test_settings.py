"""A DataNode's settings from Hadoop's keys."""

import socket
from pathlib import Path

import pytest

from datanode.namenodes.actor import Rhythm
from datanode.namenodes.claim import NameNodeId
from datanode.process.settings import DataNodeSettings, block_access, read_settings
from datanode.replicas.scanner import ScanRhythm
from datanode.replicas.volume import DataDirectory
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.listening import Door
from ha.conf.topology import HostPort
from ha.security.kerberos.auth_to_local import parse_rules
from ha.security.kerberos.settings import login
from ha.security.sasl.mechanism import Protection
from hadoop.blocks import PoolId
from hadoop.wire.peer import TransferLimits

BARE = {
    "dfs.nameservices": "ns1",
    "dfs.ha.namenodes.ns1": "nn1,nn2",
    "dfs.namenode.rpc-address.ns1.nn1": "192.0.2.1:8020",
    "dfs.namenode.rpc-address.ns1.nn2": "192.0.2.2:8020",
    "dfs.namenode.servicerpc-address.ns1.nn2": "192.0.2.2:8021",
    "dfs.datanode.data.dir": "/data",
}


def configured(more: dict[str, str]) -> Configuration:
    pairs = [f"{key}={value}" for key, value in {**BARE, **more}.items()]
    return Configuration({}, {}).with_overrides(pairs)


def read(more: dict[str, str]) -> DataNodeSettings:
    return read_settings(configured(more))


def test_without_more_it_is_reached_from_this_machine_only() -> None:
    assert [door.why for door in read({}).doors()] == [
        "no address is set, and nnha.security.mode=auto without certificates serves this host only"
    ] * 3
    assert read({}) == DataNodeSettings(
        directories=(DataDirectory(Path("/data"), "DISK"),),
        namenodes={
            NameNodeId("nn1"): HostPort("192.0.2.1", 8020),
            NameNodeId("nn2"): HostPort("192.0.2.2", 8021),
        },
        data=Door("dfs.datanode.address", "127.0.0.1", 9866),
        rpc=Door("dfs.datanode.ipc.address", "127.0.0.1", 9867),
        http=Door("dfs.datanode.http.address", "127.0.0.1", 9864),
        host_name="127.0.0.1",
        kept_free=0,
        tolerated=0,
        rhythm=Rhythm(3.0, 21600.0, 1_000_000),
        limits=TransferLimits(keep_alive_seconds=4.0, max_connections=4096),
        scan=ScanRhythm(1024 * 1024, 504 * 3600.0),
    )


KERBEROS = {"hadoop.security.authentication": "kerberos"}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("", ()),
        ("privacy", (Protection.PRIVACY,)),
        (" Integrity , privacy", (Protection.INTEGRITY, Protection.PRIVACY)),
    ],
)
def test_connections_are_protected_as_is_configured(
    value: str, found: tuple[Protection, ...]
) -> None:
    """Both what others meet here, and what this process does at other DataNodes."""
    more = {"dfs.data.transfer.protection": value, **KERBEROS}
    settings = read(more)
    assert settings.protections == found
    assert block_access(settings, None, PoolId("BP-1")).protections == found
    own = login(configured(more), parse_rules("DEFAULT", "hadoop", "R"))
    assert own.data_wanted == found


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"dfs.data.transfer.protection": "auth-conf", **KERBEROS}, "must be a list of authenti"),
        ({"dfs.encrypt.data.transfer.cipher.suites": "SM4/CTR/NoPadding"}, "must be AES/CTR/No"),
        ({"dfs.encrypt.data.transfer.cipher.key.bitlength": "100"}, "must be 128 or 192 or 256"),
        ({"dfs.data.transfer.protection": ",", **KERBEROS}, "must be a list of authentication"),
        ({"dfs.data.transfer.protection": "privacy"}, "authentication=simple nothing would be"),
        (
            {
                "dfs.data.transfer.protection": "privacy",
                "dfs.block.access.token.enable": "false",
                **KERBEROS,
            },
            "token.enable=false nothing would be protected: .*its password is a block token's",
        ),
    ],
)
def test_a_protection_that_would_protect_nothing_is_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        read(more)


@pytest.mark.parametrize("algorithm", ["", "rc4"])
@pytest.mark.parametrize("more", [{}, {"dfs.data.transfer.protection": "integrity"}])
def test_encryption_by_keys_takes_the_place_of_what_is_for_kerberos(
    more: dict[str, str], algorithm: str
) -> None:
    """``dfs.data.transfer.protection`` may be set, too: with encryption it has no effect."""
    encrypted = {
        "dfs.encrypt.data.transfer": "true", "dfs.encrypt.data.transfer.algorithm": algorithm,
    }  # fmt: skip
    settings = read({**encrypted, **more})
    assert (settings.algorithm, settings.protections) == (algorithm, ())
    access = block_access(settings, None, PoolId("BP-1"))
    assert (access.encrypts, access.protections) == (True, (Protection.PRIVACY,))
    assert not block_access(read({}), None, PoolId("BP-1")).encrypts


def test_what_is_configured_counts() -> None:
    found = read(
        {
            "dfs.datanode.address": "192.0.2.11:1",
            "dfs.datanode.ipc.address": "192.0.2.12:2",
            "dfs.datanode.http.address": "192.0.2.13:3",
            "dfs.datanode.du.reserved": "1k",
            "dfs.datanode.failed.volumes.tolerated": "2",
            "dfs.heartbeat.interval": "5s",
            "dfs.blockreport.intervalMsec": "7000",
            "dfs.blockreport.split.threshold": "9",
            "dfs.datanode.socket.reuse.keepalive": "2000",
            "dfs.datanode.max.transfer.threads": "11",
        }
    )
    assert found.doors() == [
        Door("dfs.datanode.address", "192.0.2.11", 1),
        Door("dfs.datanode.ipc.address", "192.0.2.12", 2),
        Door("dfs.datanode.http.address", "192.0.2.13", 3),
    ]
    assert (found.host_name, found.kept_free, found.tolerated) == ("192.0.2.11", 1024, 2)
    assert found.rhythm == Rhythm(5.0, 7.0, 9)
    assert found.limits == TransferLimits(keep_alive_seconds=2.0, max_connections=11)


DATA, NAME = "dfs.datanode.address", "dfs.datanode.hostname"
NAMES = {
    "the address": ({DATA: "192.0.2.11:1"}, "192.0.2.11"),
    "all interfaces": ({DATA: "0.0.0.0:1"}, socket.gethostname()),
    "all interfaces of IPv6": ({DATA: "[::]:1"}, socket.gethostname()),
    "a name of its own": ({DATA: "0.0.0.0:1", NAME: "dn1.example"}, "dn1.example"),
}


@pytest.mark.parametrize(("more", "name"), NAMES.values(), ids=NAMES)
def test_the_name_that_clients_are_told(more: dict[str, str], name: str) -> None:
    assert read(more).host_name == name


USUAL = ScanRhythm()
SCANS = {
    "as told": ("5", "2", ScanRhythm(5, 7200.0)),
    "no hours: as usual": ("5", "0", ScanRhythm(5, USUAL.period_seconds)),
    "an hour": ("5", "1", ScanRhythm(5, 3600.0)),
    "never": ("5", "-1", ScanRhythm(5, -1)),
    "without a byte: never": ("0", "2", ScanRhythm(USUAL.bytes_per_second, -1)),
    "a byte": ("1", "2", ScanRhythm(1, 7200.0)),
}


@pytest.mark.parametrize(("speed", "hours", "rhythm"), SCANS.values(), ids=SCANS)
def test_how_often_replicas_are_read(speed: str, hours: str, rhythm: ScanRhythm) -> None:
    found = read(
        {
            "dfs.block.scanner.volume.bytes.per.second": speed,
            "dfs.datanode.scan.period.hours": hours,
        }
    )
    assert found.scan == rhythm


DIRECTORIES = {
    "a path": ("/a", [("/a", "DISK")]),
    "a URI": ("file:///a%20b", [("/a b", "DISK")]),
    "types": ("[SSD]file:///a,[ram_disk]/b", [("/a", "SSD"), ("/b", "RAM_DISK")]),
}


@pytest.mark.parametrize(("text", "found"), DIRECTORIES.values(), ids=DIRECTORIES)
def test_directories_and_their_types(text: str, found: list[tuple[str, str]]) -> None:
    directories = read({"dfs.datanode.data.dir": text}).directories
    assert [(str(one.path), one.storage_type) for one in directories] == found


KEY = "dfs.datanode.data.dir"
REFUSED = {
    "no directory": ({KEY: ","}, f"{KEY} names no directory."),
    "an unknown type": ({KEY: "[TAPE]/a"}, rf"{KEY} names '\[TAPE\]/a': expected a path"),
    "lines without a comma": ({KEY: "/a\n/b"}, rf"{KEY} names '/a\\n/b': expected a path"),
    "another file system": ({KEY: "s3://a/b"}, f"{KEY}: 's3://a/b' is not a local directory"),
}


@pytest.mark.parametrize(("more", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        read(more)
