"""What a page of another site may not make a browser do here: change or read something.

A browser sends a person's certificate, or calls from a person's account on this machine, whatever
page it shows.  The bad schedules: a page of evil.example posts a form to us; or its name resolves
to our address after a while (DNS rebinding), so that the browser takes us for evil.example.  Pure.
"""

from collections.abc import Mapping
from typing import Final

from ha.daemon.http.hosts import may_be_asked

CUSTOM_HEADER: Final = "X-XSRF-HEADER"
"""Hadoop's dfs.webhdfs.rest-csrf.custom-header: no page of another site can send it unasked."""
_BROWSERS: Final = ("Mozilla", "Opera")
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def refusal(method: str, headers: Mapping[str, str], own_names: frozenset[str]) -> str | None:
    """Return why a request is refused, None where it is not; header names count in any case."""
    host = headers.get("Host")
    if not may_be_asked(host, own_names):
        return (
            f"this daemon may not be asked under the name {host!r}: call an address, its own name, "
            "or one that nnha.web.hosts in its configuration names"
        )
    if method in _READS:
        return None
    origin = headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != host:
        return f"a page of {origin} may change nothing here"
    if headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}:
        return "a page of another site may change nothing here"
    if headers.get("User-Agent", "").startswith(_BROWSERS) and CUSTOM_HEADER not in headers:
        return f"a browser has to send the header {CUSTOM_HEADER} with what changes something"
    return None
