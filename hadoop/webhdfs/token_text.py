"""A delegation token as text in addresses and JSON (Token.encodeToUrlString).  Pure."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from hadoop import writable
from hadoop.proto.hdfs_types_pb2 import TokenProto
from hadoop.token_file import read_token

KIND: Final = "WEBHDFS delegation"
"""Java's WebHdfsFileSystem looks for its tokens under this name."""


def encoded(token: TokenProto) -> str:
    """Return a token as text."""
    raw = b"".join((
        writable.vint(len(token.identifier)), token.identifier,
        writable.vint(len(token.password)), token.password,
        writable.text(token.kind), writable.text(token.service),
    ))  # fmt: skip
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> TokenProto:
    """Return the token of a text; raise ValueError if it has none."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token, pos = read_token(raw, 0)
    except (ValueError, IndexError) as problem:
        raise ValueError(f"it is no token: {problem}") from problem
    if pos != len(raw):
        raise ValueError(f"it is no token: {len(raw) - pos} bytes are behind its end")
    return token
