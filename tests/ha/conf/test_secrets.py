"""Which settings are secrets, and that no form of showing them has a byte of one."""

import time
from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.host_names import fault_of
from ha.conf.keys.cluster import ZOOKEEPER_AUTH
from ha.conf.secrets import HIDDEN, bare_secret, is_secret, redact, shown_value

SECONDS = 4.0


@pytest.mark.parametrize(
    "key",
    [
        "ha.zookeeper.auth",
        "ha.zookeeper.auth.ns1",
        "ha.zookeeper.auth.ns1.nn1",
        "hadoop.zk.ssl.keystore.PASSWORD",
        "fs.s3a.secret.key",
        "a.credential.b",
        "my.own.token",
        "my.own.token.ns1",
        "ssl.server.keystore.password.ns1.nn1",
        "ssl.server.keystore.keypassword",
        "ssl.keystore.pass",
        "hadoop.http.authentication.signature.secret",
        "fs.s3a.access.key",
        "fs.s3a.bucket.b1.access.key",
        "fs.s3a.session.key",
        "fs.s3a.session.token",
        "fs.s3a.server-side-encryption.key",
        "fs.s3a.encryption.key",
        "fs.azure.account.key.foo.blob.core.windows.net",
        "fs.azure.sas.box.foo.blob.core.windows.net",
        "fs.azure.account.oauth2.client.secret",
        "fs.adl.oauth2.refresh.token",
        "my.app.apikey",
        "my.app.api-key",
        "my.app.api.key",
        "my.app.pwd",
        "my.app.passphrase",
        "my.app.cookie",
        "my.private.key",
    ],
)
def test_a_secret_is_one_with_a_suffix_too(key: str) -> None:
    assert is_secret(key)
    assert shown_value(key, "hunter2") == HIDDEN
    assert shown_value(key, "@/etc/nnha/auth") == "@/etc/nnha/auth"


@pytest.mark.parametrize(
    "key",
    [
        "dfs.nameservices",
        "hadoop.security.authentication",
        "hadoop.security.authorization",
        "nnha.fencing.ssh.passphrase-file",
        "dfs.block.access.token.enable",
        "dfs.namenode.delegation.token.max-lifetime",
        "my.own.token.of.three.parts",
        "dfs.block.access.key.update.interval",
        "dfs.ha.fencing.ssh.private-key-files",
        "hadoop.security.key.provider.path",
        "dfs.namenode.keytab.file",
        "dfs.namenode.signature-of-nothing",
        "dfs.bypass",
    ],
)
def test_other_keys_are_shown(key: str) -> None:
    assert shown_value(key, "true") == "true"


def test_a_secret_that_is_empty_is_none() -> None:
    assert shown_value("ha.zookeeper.auth", "") == ""
    assert bare_secret("ha.zookeeper.auth=") == ""


@pytest.mark.parametrize(
    "text",
    [
        "digest:hdfs:hunter2",
        "sasl:x:cdrwa,digest:hdfs:hunter2:cdrwa",
        "shell(ipmi --user a --password hunter2 $target_host)",
        "https://user:hunter2@host/",
        "https://user:hunter2@hunter2@host/",
        "https://hunter2@host/",
        "mysql://:hunter2@h",
        "jdbc:pg://h/db?user=x&password=hunter2",
        "https://h/box?sv=1&sig=hunter2&x=1",
        "https://h/box?X-Amz-Signature=hunter2",
        "https://h/box?access_key=hunter2",
        "shell(curl -u admin:hunter2 http://x)",
        "curl -uadmin:hunter2 x",
        "curl -u 'admin:hunter2 hunter2' x",
        "curl -U admin:hunter2 x",
        "curl --user admin:hunter2 x",
        "curl --user=admin:hunter2 x",
        "curl --proxy-user 'admin:hunter2' x",
        "curl -H 'Authorization: Bearer hunter2' x",
        'curl -H "authorization: Basic aDp1bnRlcjI=hunter2" x',
        "curl -H 'Proxy-Authorization: hunter2 hunter2'",
        "curl -H 'X-Api-Key: hunter2' -H 'X-Auth-Token:hunter2'",
        "curl -H 'Cookie: a=1; id=hunter2'",
        "curl --oauth2-bearer hunter2; Bearer hunter2",
        "Basic hunter2==",
        "mysql -phunter2",
        "mysql -p hunter2",
        "sshpass -phunter2 ssh h",
        "sshpass -p 'hunter2 hunter2' ssh h",
        "fence_ipmilan -a 1 -l root -p hunter2",
        "ipmitool -U root -P hunter2 power off",
        "ipmitool -U root -Phunter2 power off",
        "openssl x -passin pass:hunter2",
        "x -password hunter2",
        "x -passphrase hunter2",
        "AWS_ACCESS_KEY_ID=hunter2 AWS_SECRET_ACCESS_KEY=hunter2 aws",
        "PGPASSWORD=hunter2 psql",
        "PASS=hunter2 y --token hunter2 --pwd hunter2",
        "export PWD='hunter2'",
        "my.apikey=hunter2;api-key: hunter2, access.key hunter2",
        "-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----",
    ],
)
def test_values_that_hold_a_secret_are_shown_without_it(text: str) -> None:
    assert "hunter2" not in redact(text)
    assert "hunter2" not in shown_value("some.key", text)
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "shell(/usr/bin/fence --host $target_host --port $target_port)",
        "shell(mysql -p$PASS -u admin; x -p ${PASS})",
        "hdfs://ns1/user/alice",
        "hdfs://alice@nn1:8020/x",
        "jceks://hdfs@nn1:8020/user/x.jceks",
        "sshfence(hdfs:22022)",
        "shell(/bin/true)",
        "nn1.example:8020,nn2.example:8020",
        "qjournal://a:8485;b:8485;c:8485/ns1",
        "kill -9 $pid; pkill -u hdfs java",
        "world:anyone:rwcda",
        "/etc/pki/private/key.pem",
    ],
)
def test_what_has_no_secret_is_shown_as_it_is(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("begun", ["a", "x-", "x-key", "pass", "token", "://", "a://b:", "-u '"])
def test_what_a_stranger_repeats_is_looked_through_once(begun: str) -> None:
    """A fault that a NameNode answers stands in a controller's page; this was 30 s for its loop."""
    text = begun * 20_000
    before = time.process_time()
    for further in ("", " ", "c" * 100_000):
        redact(text + further)
    assert time.process_time() - before < SECONDS


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("hunter2 ${x}", "is '(hidden)', but it cannot be used."),
        ("@/etc/${x}", "is '@/etc/${x}', but it needs more than 20 substitutions of ${...}."),
    ],
)
def test_a_value_that_cannot_be_read_is_not_quoted_if_it_is_a_secret(
    tmp_path: Path, value: str, told: str
) -> None:
    (tmp_path / "hdfs-site.xml").write_text(
        "<configuration>"
        f"<property><name>ha.zookeeper.auth</name><value>{value}</value></property>"
        "<property><name>x</name><value>${y}${y}</value></property>"
        "<property><name>y</name><value>${x}${x}</value></property>"
        "</configuration>"
    )
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(tmp_path, environment={}).get(ZOOKEEPER_AUTH)
    assert str(caught.value) == f"{tmp_path}/hdfs-site.xml line 1: ha.zookeeper.auth {told}"


def test_a_secret_is_known_on_a_command_line() -> None:
    assert bare_secret("ha.zookeeper.auth.ns1=digest:a:b") == "ha.zookeeper.auth.ns1"
    assert bare_secret("ha.zookeeper.auth=@/etc/auth") == ""
    assert bare_secret("dfs.nameservices=ns1") == ""


@pytest.mark.parametrize(
    "name",
    ["", "$(id)", "a;b", "a\nb", "a b", "-oProxyCommand=x", "x" * 256, "`id`", "a|b", "\x00"],
)
def test_what_a_shell_could_take_for_a_command_is_no_host(name: str) -> None:
    assert fault_of(name)


@pytest.mark.parametrize(
    "name", ["host1.example.com", "127.0.0.1", "::1", "fe80::1%eth0", "nn_1", "x" * 255]
)
def test_usual_hosts_are_hosts(name: str) -> None:
    assert fault_of(name) == ""
