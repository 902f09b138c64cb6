"""Bytes and texts that Hadoop reads, too: the breadcrumb's golden vector, ACLs and credentials."""

from dataclasses import replace

import pytest

from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, decode, encode
from ha.elector.zookeeper.credentials import AclEntry, AuthEntry, parse_acl, parse_auth
from ha.elector.zookeeper.errors import BadBreadcrumb, BadCredentialSetting

# From a live cluster of Hadoop.
GOLDEN = bytes.fromhex(
    "0a0468646673"
    "1217686466732d6e616d656e6f64652d64656661756c742d30"
    "1a47686466732d6e616d656e6f64652d64656661756c742d302e686466732d6e616d656e6f64652d64656661756c"
    "742e64656661756c742e7376632e636c75737465722e6c6f63616c"
    "20d43e"
    "28d33e"
)
NAMED = ActiveNodeInfo(
    "hdfs",
    "hdfs-namenode-default-0",
    "hdfs-namenode-default-0.hdfs-namenode-default.default.svc.cluster.local",
    8020,
    8019,
)


def test_the_golden_vector_reads_and_writes_back() -> None:
    assert decode(GOLDEN) == NAMED
    assert encode(NAMED) == GOLDEN


@pytest.mark.row("W24")
@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xff", GOLDEN[:-3], b"\x00\x00\x00\x01", GOLDEN.replace(b"hdfs", b"\xff" * 4, 1)],
)
def test_bytes_that_name_nobody_are_told_as_such(data: bytes) -> None:
    with pytest.raises(BadBreadcrumb):
        decode(data)


@pytest.mark.parametrize("name", [b"hdfs", b"hdfs-namenode-default-0", b"svc.cluster"])
def test_a_name_in_no_utf_8_is_told_as_such(name: bytes) -> None:
    with pytest.raises(BadBreadcrumb, match="names in no UTF-8"):
        decode(GOLDEN.replace(name, b"\xff" * len(name), 1))


@pytest.mark.parametrize("host", ["$(id)", "a;b", "a\nb", "x" * 4096, "-oProxyCommand=id", ""])
def test_a_host_that_a_shell_would_run_names_nobody_and_is_quoted(host: str) -> None:
    with pytest.raises(BadBreadcrumb, match="a name in the znode"):
        decode(encode(replace(NAMED, hostname=host)))


ACLS = {
    "": (),
    " , ": (),
    "world:anyone:rwcda": (AclEntry("world", "anyone", 31),),
    "sasl:hdfs/host1@MY.DOMAIN:cdrwa, sasl:hdfs/host2@MY.DOMAIN:ca": (
        AclEntry("sasl", "hdfs/host1@MY.DOMAIN", 31),
        AclEntry("sasl", "hdfs/host2@MY.DOMAIN", 20),
    ),
    "digest:user:hash=:r": (AclEntry("digest", "user:hash=", 1),),
}


@pytest.mark.parametrize("text", ACLS)
def test_acls(text: str) -> None:
    assert parse_acl(text) == ACLS[text]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a:b", "'a:b'"), ("a", "'a'"), ("password:foo:rx", "invalid permission 'x'")],
)
def test_bad_acls_name_the_item(text: str, complaint: str) -> None:
    with pytest.raises(BadCredentialSetting, match=complaint):
        parse_acl(text)


def test_auth_splits_at_the_first_colon_only() -> None:
    assert parse_auth("scheme:data,\n   scheme2:user:pass") == (
        AuthEntry("scheme", "data"),
        AuthEntry("scheme2", "user:pass"),
    )
    assert parse_auth("") == ()


def test_secrets_stay_out_of_messages() -> None:
    assert "pass" not in repr(parse_auth("digest:user:pass"))
    with pytest.raises(BadCredentialSetting) as caught:
        parse_auth("ok:fine,hunter2")
    assert "hunter2" not in str(caught.value)
