"""Runs a program where /etc/hosts is ours and the name server takes questions and answers none."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests import ROOT

SERVER: Final = "127.0.0.54"
_SINK: Final = f"""\
import socket
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.bind(({SERVER!r}, 53))
print("silent", flush=True)
while True:
    taken.recv(2000)
"""
_BEGIN: Final = """\
set -e
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/resolv.conf" /etc/resolv.conf
ip link set lo up
shift
exec "$@"
"""
SINK: Final = (sys.executable, "-c", _SINK)
"""The server; it prints a line when it has begun.  Without it questions are refused at once."""
_SILENT: Final = """\
mkfifo "$1/begun"
"$2" -c "$3" > "$1/begun" &
read -r _ < "$1/begun"
shift 3
"$@" && code=0 || code=$?
kill $!
exit $code
"""


def among_names(
    folder: Path, argv: Sequence[str], names: Sequence[str] = (), *, silent: bool = True
) -> list[str]:
    """Return the command that runs ``argv`` where these names are this host and no others are.

    Each has an address of IPv6 and one of IPv4.
    It has mounts and a network of its own.  Needs root; see ``tests.needs.NAMESPACES``.
    """
    known = " ".join(["localhost", *names])
    (folder / "hosts").write_text(f"::1 {known}\n127.0.0.1 {known}\n")
    (folder / "resolv.conf").write_text(f"nameserver {SERVER}\n")
    inner = ["sh", "-c", _SILENT, "sh", str(folder), *SINK[:1], _SINK, *argv] if silent else argv
    return ["unshare", "--mount", "--net", "sh", "-c", _BEGIN, "sh", str(folder), *inner]


def program(*arguments: str) -> list[str]:
    """Return the command that runs a module of the project."""
    return [sys.executable, "-m", *arguments]


ENVIRONMENT: Final = {"PYTHONPATH": str(ROOT)}
