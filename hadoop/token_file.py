"""Tokens as YARN and Spark leave them to a job: the file of Hadoop's Credentials.  Pure."""

from typing import Final

from hadoop import writable
from hadoop.proto.hdfs_types_pb2 import TokenProto

_BEGIN: Final = b"HDTS\0"
"""The last byte is the form; the other one, protobuf, has to be asked for (``hadoop dtutil``)."""
_MAX_BYTES: Final = 8192
_MAX_TOKENS: Final = 1000


def tokens_in(raw: bytes) -> list[TokenProto]:
    """Return the tokens of a file; raise ValueError or IndexError if it is none.

    Secrets that stand behind them are passed over.
    """
    if not raw.startswith(_BEGIN):
        raise ValueError("it begins with no HDTS and 0")
    count, pos = writable.read_vint(raw, len(_BEGIN))
    if not 0 <= count <= _MAX_TOKENS:
        raise ValueError(f"{count} tokens, at most {_MAX_TOKENS}")
    found = []
    for _ in range(count):
        _, pos = writable.read_text(raw, pos)  # an alias, which is the service again
        token, pos = read_token(raw, pos)
        found.append(token)
    return found


def read_token(raw: bytes, pos: int) -> tuple[TokenProto, int]:
    """Read a token as a Writable; return it and the position behind it."""
    identifier, pos = writable.read_sized(raw, pos, _MAX_BYTES)
    password, pos = writable.read_sized(raw, pos, _MAX_BYTES)
    kind, pos = writable.read_text(raw, pos)
    service, pos = writable.read_text(raw, pos)
    token = TokenProto(identifier=identifier, password=password, kind=kind, service=service)
    return token, pos
