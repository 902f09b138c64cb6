"""The cookie ``hadoop.auth``: what a caller has proved, for its next request.  Pure.

Java's clients prove themselves with an OPTIONS of their own (AuthenticatedURL), and then send a
body that they cannot send twice, so they do not answer a 401: what came with OPTIONS has to open
that request.  A cookie that is overheard could be used by others, so it is given for OPTIONS alone
and counts for the same address and a minute; no other process can make one.
"""

import base64
import hmac
from collections.abc import Callable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Final

NAME: Final = "hadoop.auth"
LIFE_SECONDS: Final = 60
_TYPE: Final = "kerberos"
"""Java's client takes no other type for a proof."""
_MOST_CHARACTERS: Final = 1024
_UNFIT: Final = frozenset('&="\\;, ')


class ProofCookies:
    """Makes cookies and knows its own; ``clock`` gives the seconds of the wall clock."""

    def __init__(self, secret: bytes, clock: Callable[[], float]) -> None:
        self._secret = secret
        self._clock = clock

    def made(self, user: str, principal: str, host: str, *, encrypted: bool = False) -> str | None:
        """Return the value of Set-Cookie; None for names that cannot stand in one."""
        if any(not name.isascii() or not name.isprintable() or _UNFIT & set(name)
               for name in (user, principal)):  # fmt: skip
            return None
        millis = int((self._clock() + LIFE_SECONDS) * 1000)
        told = f"u={user}&p={principal}&t={_TYPE}&e={millis}"
        signed = f"{told}&s={self._signature(told, host)}"
        rest = f"Path=/; Max-Age={LIFE_SECONDS}; HttpOnly; SameSite=Strict"
        return f'{NAME}="{signed}"; {rest}{"; Secure" if encrypted else ""}'

    def principal_in(self, header: str, host: str) -> str | None:
        """Return the principal of a cookie of ours in a Cookie header; None: there is none."""
        value = _value(header)
        told, found, signature = value.rpartition("&s=")
        if not found or not hmac.compare_digest(
            signature.encode(), self._signature(told, host).encode()
        ):
            return None
        parts = dict(part.split("=", 1) for part in told.split("&"))  # ours: it has all of them
        return parts["p"] if self._clock() * 1000 < int(parts["e"]) else None

    def _signature(self, told: str, host: str) -> str:
        digest = hmac.new(self._secret, f"{host}\0{told}".encode(), sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _value(header: str) -> str:
    if len(header) > _MOST_CHARACTERS or NAME not in header:
        return ""
    try:
        found = SimpleCookie(header).get(NAME)
    except CookieError:
        return ""
    return "" if found is None else found.value
