"""The token of a process, out of a file as Hadoop 3.5.0 writes it."""

import os
import resource
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from files.held_tokens import TOKEN_FILE, held_token
from ha.conf.errors import ConfigurationError
from ha.rpc.sasl.initiation import LoginToken
from hadoop.token_file import tokens_in

JAVAS = bytes.fromhex(
    "484454530002036b6d73017814000102030405060708090a0b0c0d0e0f10111213066b6d732d6474"
    "0d31302e302e302e313a393630300b68612d686466733a6e73311d0005616c696365047961726e00"
    "8a018bcfe568008a018bf3f1ec00010114000102030405060708090a0b0c0d0e0f10111213154844"
    "46535f44454c45474154494f4e5f544f4b454e0b68612d686466733a6e7331010673656372657405"
    "76616c7565"
)
"""A token of a key server, one of the nameservice ns1, and a secret."""
IDENTIFIER = bytes.fromhex("0005616c696365047961726e008a018bcfe568008a018bf3f1ec000101")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "container_tokens"
    monkeypatch.setenv(TOKEN_FILE, str(path))
    return path


def test_all_tokens_of_a_file_are_read() -> None:
    kms, hdfs = tokens_in(JAVAS)
    assert (kms.identifier, kms.kind, kms.service) == (b"x", "kms-dt", "10.0.0.1:9600")
    assert (hdfs.identifier, hdfs.password) == (IDENTIFIER, bytes(range(20)))


def test_the_token_of_a_nameservice_is_taken(file: Path) -> None:
    file.write_bytes(JAVAS)
    assert held_token("ns1") == LoginToken(
        "alice", b64encode(IDENTIFIER).decode(), b64encode(bytes(range(20)))
    )
    assert held_token("ns2") is None
    file.write_bytes(JAVAS.replace(b"HDFS_DELEGATION_TOKEN", b"HDFS_DELEGATION_TOKEM"))
    assert held_token("ns1") is None


def test_without_a_file_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_FILE, raising=False)
    assert held_token("ns1") is None
    monkeypatch.setenv(TOKEN_FILE, "")
    assert held_token("ns1") is None


WRONG = {
    "another file": b"PK\x03\x04",
    "an empty file": b"",
    "another form": JAVAS.replace(b"HDTS\x00", b"HDTS\x01"),
    "cut off": JAVAS[:60],
    "no count": b"HDTS\x00",
    "a negative count": b"HDTS\x00\xff",
    "very many tokens": b"HDTS\x00\x8e\x03\xe9",
    "a long identifier": b"HDTS\x00\x01\x00\x8e\x20\x01" + bytes(9000),
}


@pytest.mark.parametrize("raw", WRONG.values(), ids=WRONG)
def test_what_is_no_file_of_tokens_is_refused_with_its_name(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    with pytest.raises(ConfigurationError, match=f"{TOKEN_FILE} names {file}"):
        held_token("ns1")


def test_what_never_ends_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(file)
    with pytest.raises(ConfigurationError, match="a pipe, whose writer may never come"):
        held_token("ns1")
    monkeypatch.setenv(TOKEN_FILE, "/dev/zero")
    with limited_memory(), pytest.raises(ConfigurationError, match="begins with no HDTS"):
        held_token("ns1")


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let this process take a gigabyte more."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    more = pages * resource.getpagesize() + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_file_that_is_not_there_is_refused(file: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"{file}, which is no file of tokens"):
        held_token("ns1")


def test_a_thousand_tokens_are_the_most() -> None:
    one = b"\x00\x00\x00\x00\x00"
    assert len(tokens_in(b"HDTS\x00\x8e\x03\xe8" + one * 1000)) == 1000
    with pytest.raises(ValueError, match="1001 tokens, at most 1000"):
        tokens_in(b"HDTS\x00\x8e\x03\xe9" + one * 1001)
    assert tokens_in(b"HDTS\x00\x00") == []
