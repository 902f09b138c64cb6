"""Which ACL znodes get where none is configured, and what is refused, by the security mode."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.daemon.process import ExitWith
from ha.elector.zookeeper.credentials import CREATOR_ALL, AclEntry, parse_acl
from ha.elector.zookeeper.settings import zookeeper_settings
from ha.zkfc.process.open_znodes import refuse_open_znodes
from tests.ha.elector.certificates import Authority

OPEN = (AclEntry("world", "anyone", 31),)
MODES = ("auto", "strict", "permissive", "insecure-i-know")


def _read(folder: Path, mode: str, values: Mapping[str, str]) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    given = {"ha.zookeeper.quorum": "zk.invalid:2181", "nnha.security.mode": mode, **values}
    return load_configuration(folder, [f"{name}={value}" for name, value in given.items()])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("proof", ["password", "certificate", "nothing"])
def test_who_proves_who_it_is_gets_znodes_of_its_own(tmp_path: Path, mode: str, proof: str) -> None:
    authority = Authority(tmp_path / "ca", "ca")
    proofs = {
        "password": {"ha.zookeeper.auth": "digest:hdfs:word"},
        "certificate": {
            "hadoop.zk.ssl.enabled": "true",
            "hadoop.zk.ssl.truststore.location": str(authority.trusted),
            "hadoop.zk.ssl.keystore.location": str(authority.issue("nn1")),
        },
        "nothing": {},
    }
    settings = zookeeper_settings(_read(tmp_path, mode, proofs[proof]), nameservice="ns1")
    closed = proof != "nothing" and mode in ("auto", "strict")
    assert settings.acl == ((CREATOR_ALL,) if closed else OPEN)
    assert bool(settings.warning) is not closed


def test_a_configured_acl_stays_as_it_is(tmp_path: Path) -> None:
    values = {
        "ha.zookeeper.auth": "digest:hdfs:word",
        "ha.zookeeper.acl.ns1": "auth::rwcda,sasl:ops:r",
    }
    settings = zookeeper_settings(_read(tmp_path, "auto", values), nameservice="ns1")
    assert settings.acl == parse_acl("auth::rwcda,sasl:ops:r")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("hosts", "acl", "decided", "fits"),
    [
        ("10.1.2.3:2181", "world:anyone:rwcda", "", False),
        ("127.0.0.1:2181,10.1.2.3:2181", "world:anyone:rwcda", "", False),
        ("zk.invalid:2181", "world:anyone:c", "", False),
        ("127.0.0.1:2181,127.0.0.2:2181", "world:anyone:rwcda", "", True),
        ("10.1.2.3:2181", "auth::rwcda", "", True),
        ("10.1.2.3:2181", "world:anyone:rwcda", "warn", True),
        ("10.1.2.3:2181", "world:anyone:rwcda", "allow", True),
    ],
)
def test_open_znodes_keep_a_zkfc_from_starting(
    tmp_path: Path, mode: str, hosts: str, acl: str, decided: str, fits: bool
) -> None:
    values = {"ha.zookeeper.quorum": hosts, "ha.zookeeper.acl": acl}
    if decided:
        values["nnha.zookeeper.open-acl"] = decided
    conf = _read(tmp_path, mode, values)
    settings = zookeeper_settings(conf, nameservice="ns1")
    if fits or mode not in ("auto", "strict"):
        refuse_open_znodes(conf, settings, nameservice="ns1", namenode="nn1")
        return
    with pytest.raises(ExitWith, match=r"anybody who reaches.*ha\.zookeeper\.auth") as caught:
        refuse_open_znodes(conf, settings, nameservice="ns1", namenode="nn1")
    assert caught.value.code == 78


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("nonsense", "ha.zookeeper.auth: item 1 has no colon"),
        ("@/no/such/file", "/no/such/file: cannot read .* named with @: No such file"),
    ],
)
def test_credentials_that_cannot_be_used_are_named(tmp_path: Path, value: str, says: str) -> None:
    conf = _read(tmp_path, "auto", {"ha.zookeeper.auth": value})
    with pytest.raises(ConfigurationError, match=says):
        zookeeper_settings(conf, nameservice="ns1")


@pytest.mark.parametrize("key", ["ha.zookeeper.auth", "ha.zookeeper.acl"])
@pytest.mark.parametrize(
    ("bits", "mode", "taken"),
    [
        (0o600, "strict", True),
        (0o400, "strict", True),
        (0o640, "strict", False),
        (0o604, "strict", False),
        (0o620, "strict", False),
        (0o601, "strict", False),
        (0o644, "auto", True),
    ],
)
def test_strict_takes_credentials_only_from_files_of_their_owner_alone(
    tmp_path: Path, key: str, bits: int, mode: str, taken: bool
) -> None:
    file = tmp_path / "words"
    file.write_text("digest:hdfs:secret" if key.endswith("auth") else "sasl:nn:rwcda")
    file.chmod(bits)
    conf = _read(tmp_path, mode, {key: f"@{file}"})
    if taken:
        zookeeper_settings(conf, nameservice="ns1")
        return
    with pytest.raises(ConfigurationError, match=f"{file}: its mode is {bits:04o}") as caught:
        zookeeper_settings(conf, nameservice="ns1")
    assert "secret" not in str(caught.value)
