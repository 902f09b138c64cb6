"""The rows of Hadoop's TestZKUtil: ACLs and credentials as texts and files."""

from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.elector.zookeeper.credentials import CREATOR_ALL, AclEntry, AuthEntry, parse_acl, parse_auth
from ha.elector.zookeeper.errors import BadCredentialSetting
from ha.elector.zookeeper.settings import ZooKeeperSettings, zookeeper_settings


def _read(folder: Path, **values: str) -> ZooKeeperSettings:
    (folder / "core-site.xml").write_text("<configuration/>")
    given = {"ha.zookeeper.quorum": "zk:2181"}
    given |= {f"ha.zookeeper.{name}": value for name, value in values.items()}
    overrides = [f"{name}={value}" for name, value in given.items()]
    return zookeeper_settings(load_configuration(folder, overrides), nameservice="ns1")


@pytest.mark.row("8.12 empty-ACL")
def test_row_8_12_empty_acl() -> None:
    assert parse_acl("") == ()


@pytest.mark.row("8.12 null-ACL")
def test_row_8_12_null_acl(tmp_path: Path) -> None:
    # Nothing is left of it: the creator alone has rights, as in Hadoop's failover controller.
    assert _read(tmp_path, acl=" , ").acl == (CREATOR_ALL,)
    assert _read(tmp_path).acl == (AclEntry("world", "anyone", 31),)


@pytest.mark.row("8.12 ACL-without-two-colons")
@pytest.mark.parametrize("text", ["a:b", "a"])
def test_row_8_12_acl_without_two_colons(text: str) -> None:
    with pytest.raises(BadCredentialSetting, match=f"'{text}' is not of the shape scheme:id:perm"):
        parse_acl(text)


@pytest.mark.row("8.12 ACL-with-a-bad-letter")
def test_row_8_12_acl_with_a_bad_letter() -> None:
    with pytest.raises(BadCredentialSetting, match="invalid permission 'x' in 'password:foo:rx'"):
        parse_acl("password:foo:rx")


@pytest.mark.row("8.12 two-SASL-ACLs")
def test_row_8_12_two_sasl_acls() -> None:
    text = "sasl:hdfs/host1@MY.DOMAIN:cdrwa, sasl:hdfs/host2@MY.DOMAIN:ca"
    assert parse_acl(text) == (
        AclEntry("sasl", "hdfs/host1@MY.DOMAIN", 31),
        AclEntry("sasl", "hdfs/host2@MY.DOMAIN", 4 | 16),
    )


@pytest.mark.row("8.12 empty-auth")
def test_row_8_12_empty_auth() -> None:
    assert parse_auth("") == ()


@pytest.mark.row("8.12 null-auth")
def test_row_8_12_null_auth(tmp_path: Path) -> None:
    assert _read(tmp_path).auth == ()


@pytest.mark.row("8.12 good-auth")
def test_row_8_12_good_auth() -> None:
    assert parse_auth("scheme:data,\n   scheme2:user:pass") == (
        AuthEntry("scheme", "data"),
        AuthEntry("scheme2", "user:pass"),
    )


@pytest.mark.row("8.12 indirection-none")
def test_row_8_12_indirection_none(tmp_path: Path) -> None:
    assert _read(tmp_path, auth="").auth == ()


@pytest.mark.row("8.12 indirection-plain")
def test_row_8_12_indirection_plain(tmp_path: Path) -> None:
    assert _read(tmp_path, auth="x:y").auth == (AuthEntry("x", "y"),)


@pytest.mark.row("8.12 indirection-file")
def test_row_8_12_indirection_file(tmp_path: Path) -> None:
    (tmp_path / "auth").write_text("\n digest:hdfs:secret,other:one \n")
    (tmp_path / "acl").write_text("sasl:hdfs@R:rwcda\n")
    settings = _read(tmp_path, auth=f"@{tmp_path}/auth", acl=f"@{tmp_path}/acl")
    assert settings.auth == (AuthEntry("digest", "hdfs:secret"), AuthEntry("other", "one"))
    assert settings.acl == (AclEntry("sasl", "hdfs@R", 31),)


@pytest.mark.parametrize("which", ["auth", "acl"])
def test_credentials_that_are_no_text_are_told_and_not_shown(tmp_path: Path, which: str) -> None:
    (tmp_path / "keytab").write_bytes(b"\x05\x02secret\xff")
    with pytest.raises(ConfigurationError, match="they are no UTF-8 text") as caught:
        _read(tmp_path, **{which: f"@{tmp_path}/keytab"})
    assert "secret" not in str(caught.value)


@pytest.mark.row("8.12 indirection-missing-file")
@pytest.mark.parametrize("which", ["auth", "acl"])
def test_row_8_12_indirection_missing_file(tmp_path: Path, which: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{tmp_path}/nowhere: .*No such file"):
        _read(tmp_path, **{which: f"@{tmp_path}/nowhere"})
