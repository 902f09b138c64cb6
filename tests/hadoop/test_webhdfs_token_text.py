"""A token as text: what Java writes, and what is no token."""

import pytest

from hadoop.proto.hdfs_types_pb2 import TokenProto
from hadoop.webhdfs.token_text import KIND, decoded, encoded

JAVAS = "CmlkZW50aWZpZXIU7O3u7_Dx8vP09fb3-Pn6-_z9_v8SV0VCSERGUyBkZWxlZ2F0aW9uDjEyNy4wLjAuMTo5ODcw"
"""Token.encodeToUrlString."""
TOKEN = TokenProto(
    identifier=b"identifier", password=bytes(range(236, 256)), kind=KIND, service="127.0.0.1:9870"
)


def test_it_is_javas() -> None:
    assert encoded(TOKEN) == JAVAS
    assert decoded(JAVAS) == TOKEN


@pytest.mark.parametrize("size", [*range(6), 8192])
def test_texts_of_every_length_are_read(size: int) -> None:
    token = TokenProto(identifier=bytes(size), password=b"\xff" * size, kind="", service="")
    assert "=" not in encoded(token)
    assert decoded(encoded(token)) == token


@pytest.mark.parametrize("field", ["identifier", "password"])
def test_what_is_too_long_is_refused(field: str) -> None:
    token = TokenProto(identifier=b"", password=b"", kind="", service="")
    setattr(token, field, bytes(8193))
    with pytest.raises(ValueError, match="it is no token"):
        decoded(encoded(token))
