"""Each key set alone to a value of its own changes the settings that wiring.txt says, and no other.

So a key that is read in another's place, in another unit, without its suffix or not at all changes
that table.  ``NNHA_REWRITE=1`` writes it anew, to be reviewed as a diff.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from ha.conf.configuration import Configuration
from ha.conf.errors import BadValue
from ha.conf.keys.hosts import JSON_HOSTS
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.table import KEYS
from ha.conf.keys.units import duration
from tests import ROOT
from tests.ha.conf.test_known_keys import modules_of_keys
from tests.ha.conf.wired import made_of
from tests.transitions import same_as

TABLE = Path(__file__).with_name("wiring.txt")
SUFFIX = {Scope.GLOBAL: "", Scope.NAMESERVICE: ".ns1", Scope.NAMENODE: ".ns1.nn1"}
BASE = (
    "dfs.nameservices=ns1",
    "dfs.ha.namenodes.ns1=nn1,nn2",
    "dfs.ha.namenode.id=nn1",
    "dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:8020",
    "dfs.namenode.rpc-address.ns1.nn2=127.0.0.2:8020",
    "dfs.namenode.shared.edits.dir=qjournal://127.0.0.1:8485;127.0.0.2:8485;127.0.0.3:8485/ns1",
    "ha.zookeeper.quorum=127.0.0.1:2181",
    "dfs.ha.fencing.methods=shell(true)",
    "dfs.ha.tail-edits.in-progress=true",
    "hadoop.tmp.dir=/t",
    "hadoop.security.authorization=true",
)
VALUES = {
    "dfs.block.access.token.enable": "false",
    "dfs.checksum.type": "CRC32",
    "dfs.data.transfer.protection": "privacy",
    "dfs.encrypt.data.transfer.algorithm": "rc4",
    "dfs.encrypt.data.transfer.cipher.key.bitlength": "192",
    "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
    "dfs.ha.namenode.id": "nn2",
    "dfs.ha.namenodes": "nn2,nn1",
    "dfs.ha.fencing.methods": "shell(false)",
    "dfs.image.compression.codec": "org.apache.hadoop.io.compress.GzipCodec",
    "dfs.internal.nameservices": "ns1",
    "dfs.journalnode.edits.dir.perm": "750",
    "dfs.namenode.hosts.provider.classname": JSON_HOSTS,
    "dfs.namenode.rpc-address": "127.0.0.8:8020",
    "dfs.namenode.shared.edits.dir": "qjournal://127.0.0.7:8485/ns7",
    "hadoop.user.group.static.mapping.overrides": "alice=blue",
    "fs.permissions.umask-mode": "027",
    "fs.protected.directories": "/p",
    "ha.zookeeper.acl": "world:anyone:r",
    "ha.zookeeper.auth": "digest:a:b",
    "ha.zookeeper.parent-znode": "/other",
    "hadoop.rpc.protection": "privacy",
    "hadoop.security.authentication": "kerberos",
    "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping",
    "nnha.audit.format": "hadoop",
    "nnha.fencing.ssh.host-keys": "accept-new",
    "nnha.journal.transport": "hadoop-rpc",
    "nnha.namenode.format-layout-version": "-65",
    "nnha.security.clients": "simple-i-know",
    "nnha.security.mode": "permissive",
    "nnha.zookeeper.open-acl": "allow",
}
HADOOP_RPC = "nnha.journalnode.hadoop-rpc-address=127.0.0.1:8486"
WITH = {
    "dfs.data.transfer.protection": ("hadoop.security.authentication=kerberos",),
    "dfs.encrypt.data.transfer.algorithm": ("dfs.encrypt.data.transfer=true",),
    "dfs.encrypt.data.transfer.cipher.key.bitlength": (
        "dfs.encrypt.data.transfer.cipher.suites=AES/CTR/NoPadding",
    ),
    "dfs.image.compression.codec": ("dfs.image.compress=true",),
    "dfs.image.parallel.target.sections": ("dfs.image.parallel.load=true",),
    "dfs.namenode.hosts.provider.classname": ("dfs.hosts=/hosts",),
    "dfs.namenode.lifeline.rpc-bind-host": ("dfs.namenode.lifeline.rpc-address=127.0.0.1:8022",),
    "dfs.namenode.servicerpc-bind-host": ("dfs.namenode.servicerpc-address=127.0.0.1:8021",),
    "ha.zookeeper.acl": ("nnha.zookeeper.open-acl=allow",),
    "hadoop.zk.ssl.keystore.location": ("hadoop.zk.ssl.enabled=true",),
    "hadoop.zk.ssl.keystore.password": ("hadoop.zk.ssl.enabled=true",),
    "hadoop.zk.ssl.truststore.location": ("hadoop.zk.ssl.enabled=true",),
    "net.topology.node.switch.mapping.impl": ("net.topology.script.file.name=/script",),
    "net.topology.script.number.args": ("net.topology.script.file.name=/script",),
    "nnha.journal.transport": (HADOOP_RPC,),
    "nnha.journalnode.hadoop-rpc-bind-host": (HADOOP_RPC,),
    "nnha.zookeeper.ssl.check-host-name": ("hadoop.zk.ssl.enabled=true",),
    "nnha.zookeeper.ssl.private-key.location": ("hadoop.zk.ssl.enabled=true",),
}
"""What else is set, so that a key has an effect."""


def value_of(key: Key[object]) -> str:
    """Return a text that is not the default and that no other key has, but for flags."""
    if (said := VALUES.get(key.name)) is not None:
        return said
    flags = {"true": "false", "false": "true"}
    number = crc32(key.name.encode())
    port = f"{number % 7919 + 1009}"
    if key.name.endswith("-host"):
        return f"127.{number % 199 + 11}.{number % 197 + 11}.9"
    if key.name.endswith(("c-address", "p-address", "e-address", ".address")):
        return f"127.0.0.9:{port}"
    for text in (
        *flags.get(key.default, "").split(), port, f"{number % 83 + 11}", f"0.{number % 83 + 11}",
    ):  # fmt: skip
        try:
            key.parse(text)
        except BadValue:
            continue
        return text
    raise AssertionError(f"{key.name}: which value?")


@cache
def base(more: tuple[str, ...]) -> tuple[Configuration, dict[str, dict[str, str]]]:
    conf = Configuration({}, {"HOME": "/home/h"}).with_overrides([*BASE, *more])
    return conf, made_of(conf)


def effects(key: Key[object], suffix: str = "") -> list[str]:
    """Return a line for each setting that the key changes."""
    conf, before = base(WITH.get(key.name, ()))
    after = made_of(conf.with_overrides([f"{key.name}{suffix}={value_of(key)}"]))
    lines = []
    for reader, was in before.items():
        now = after[reader]
        changed = sorted(what for what in was.keys() | now.keys() if was.get(what) != now.get(what))
        if list(now) == [reader] and "refused" in now[reader]:
            lines += [f"    {reader}: {now[reader]}"] * bool(changed)
            continue
        for what in changed:
            lines.append(f"    {what}: {was.get(what, 'none')} -> {now.get(what, 'none')}")
    return lines


def rows(keys: Iterable[Key[object]]) -> Iterator[str]:
    for key in keys:
        lines, suffix = effects(key), SUFFIX[key.scope]
        yield f"{key.name} = {value_of(key)}"
        yield from lines
        if suffix and (narrower := effects(key, suffix)) != lines:
            yield f"{key.name}{suffix} = {value_of(key)}"
            yield from narrower


def test_each_key_changes_the_settings_that_it_is_for_and_no_other() -> None:
    same_as(TABLE, list(rows(KEYS[name] for name in sorted(KEYS))))


def test_each_key_that_changes_nothing_here_is_in_another_test() -> None:
    constants = {
        key.name: name
        for module in modules_of_keys()
        for name, key in vars(import_module(module)).items()
        if isinstance(key, Key)
    }
    table = TABLE.read_text().splitlines()
    bare = {
        row.partition(" = ")[0]
        for row, after in pairwise([*table, ""])
        if not row.startswith(" ") and not after.startswith(" ")
    }
    paths = [path for path in (ROOT / "tests").rglob("*.py") if path.parent != TABLE.parent]
    paths += TABLE.parent.glob("test_[a-v]*.py")
    words = set(re.findall(r"[\w.-]+", "\n".join(path.read_text() for path in paths)))
    ends = {word.rpartition(".")[2] for word in words}
    unseen = {
        name
        for name in bare & KEYS.keys()
        if constants[name] not in ends and not any(word.startswith(name) for word in words)
    }
    assert not unseen
    assert len(bare) > 20


def reviewed(key: Key[object]) -> list[str]:
    """Return the table's rows of a key."""
    found, its = list[str](), False
    for row in TABLE.read_text().splitlines():
        if not row.startswith(" "):
            its = row.partition(" = ")[0] in (key.name, f"{key.name}{SUFFIX[key.scope]}")
        found += [row] * its
    return found


PLANTED: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "two deadlines swapped": ("journal", "START_SEGMENT_TIMEOUT", "WRITE_TIMEOUT", {}),
    "two limits swapped": ("namenode", "EXTRA_EDITS_RETAINED", "EXTRA_SEGMENTS_RETAINED", {}),
    "another's flag": ("files", "ACLS", "XATTRS", {}),
    "another unit": ("journal", "SYNC_INTERVAL", "SYNC_INTERVAL", {"parse": duration("s")}),
    "no suffix": ("candidate", "FLAP_WINDOW", "FLAP_WINDOW", {"scope": Scope.GLOBAL}),
    "another name": ("cluster", "FENCING_TOTAL_TIMEOUT", "FENCING_TOTAL_TIMEOUT", {"name": "x.y"}),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_each_kind_of_wrong_wire_changes_the_table(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, one, other, wrong = PLANTED[bug]
    keys = import_module(f"ha.conf.keys.{module}")
    asked = getattr(keys, one)
    for sound in (True, False):
        if not sound:
            monkeypatch.setattr(keys, one, replace(getattr(keys, other), **wrong))
        base.cache_clear()
        assert (reviewed(asked) == list(rows([asked]))) is sound
    base.cache_clear()
