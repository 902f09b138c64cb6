"""What a host's name may consist of before it goes into a script's environment.  Pure."""

from typing import Final

MAX_BYTES: Final = 255
_SHELL: Final = frozenset("$`;&|<>()\\\"'*?{}!#~^ \t")


def fault_of(name: str) -> str:
    """Return why a name of a host or a node cannot be used; empty if it can.

    Scripts put names into command lines, where ``$(id)`` or ``-oProxyCommand=...`` is a command.
    """
    if not name:
        return "is empty"
    if len(name.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return f"is longer than {MAX_BYTES} bytes"
    if not name.isprintable():
        return "has characters that cannot be printed"
    if name.startswith("-") or not _SHELL.isdisjoint(name):
        return "has characters that a shell gives a meaning"
    return ""
