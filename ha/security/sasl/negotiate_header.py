"""The headers of ``Negotiate``, by which HTTP carries SPNEGO's tokens (RFC 4559).  Pure.

A request has one token, and the answer to it perhaps one; longer conversations are refused.
"""

import binascii
from collections.abc import Sequence
from typing import Final

from ha.security.sasl.mechanism import SaslFailure

SCHEME: Final = "Negotiate"
MAX_TOKEN_BYTES: Final = 11 * 1024
"""Of one token, so that its header fits in a head of 16 KiB; those of Active Directory with many
groups come near it."""
_MAX_TEXT: Final = -(-MAX_TOKEN_BYTES // 3) * 4
_PUBLIC: Final = "the Authorization header is no Negotiate with one token"


def token_shown(values: Sequence[str]) -> bytes | None:
    """Return the token that the Authorization headers of a request show; None: there is none.

    Other schemes are none of ours, and nothing follows from them.

    Raises:
        SaslFailure: it says Negotiate, and is not that, or says more.
    """
    ours = [value for value in values if _scheme(value) == SCHEME.lower()]
    if not ours:
        return None
    if len(values) > 1:
        raise SaslFailure(f"{len(values)} Authorization headers", public=_PUBLIC)
    token = _token(ours[0])
    if not token:
        raise SaslFailure("Negotiate without a token", public=_PUBLIC)
    return token


def token_answered(values: Sequence[str]) -> bytes | None:
    """Return the token that a server's WWW-Authenticate headers carry, empty where they only ask.

    None: they do not speak of Negotiate.

    Raises:
        SaslFailure: what follows Negotiate is no token.
    """
    for challenge in ",".join(values).split(","):
        if _scheme(challenge.strip()) == SCHEME.lower():
            return _token(challenge.strip())
    return None


def header(token: bytes) -> str:
    """Return the value of a header with a token; an empty one asks for a token."""
    return f"{SCHEME} {binascii.b2a_base64(token, newline=False).decode()}" if token else SCHEME


def _scheme(value: str) -> str:
    return value.partition(" ")[0].lower()


def _token(value: str) -> bytes:
    text = value.partition(" ")[2].strip(" ")
    if len(text) > _MAX_TEXT:
        raise SaslFailure(f"a token of {len(text)} characters", public=_PUBLIC)
    try:
        token = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError as failure:  # of which those of binascii and of text are kinds
        raise SaslFailure(f"no base64: {failure}", public=_PUBLIC) from failure
    if len(token) > MAX_TOKEN_BYTES:
        raise SaslFailure(f"a token of {len(token)} bytes", public=_PUBLIC)
    return token
