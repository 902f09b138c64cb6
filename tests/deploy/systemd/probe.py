"""Tries what a daemon must not be able to do, inside a unit's sandbox; prints one JSON object.

It needs only the standard library: it is run in the place of the daemon.
"""

import ctypes
import json
import mmap
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

CLONE_NEWUSER = 0x10000000


def refused(work: Callable[[], object]) -> bool:
    """Return whether the system does not allow it."""
    try:
        work()
    except OSError:
        return True
    return False


def set_user_id_bit(folder: Path) -> None:
    """Try what would let others run a file as us."""
    file = folder / "probe"
    file.touch()
    try:
        file.chmod(0o4755)
    finally:
        file.unlink()


def namespace() -> None:
    """Enter a namespace of users, in which one is root."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")


def facts() -> dict[str, str]:
    """Return what the kernel says of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def main() -> None:
    """Try all; the argument is a folder that the daemon may write to."""
    mine = Path(sys.argv[1])
    told = facts()
    found = {
        "writes_etc": not refused(lambda: Path("/etc/probe").touch()),
        "writes_usr": not refused(lambda: Path("/usr/probe").touch()),
        "sees_home": not refused(lambda: Path("/home/somebody/secret").stat()),
        "sees_init": not refused(lambda: Path("/proc/1").stat()),
        "becomes_root": not refused(lambda: os.setuid(0)),
        "makes_namespaces": not refused(namespace),
        "sets_user_id_bits": not refused(lambda: set_user_id_bit(mine)),
        "writes_code": not refused(
            lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)
        ),
        "hears_packets": not refused(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
        "capabilities": int(told["CapEff"], 16) | int(told["CapBnd"], 16),
        "new_privileges": told["NoNewPrivs"] != "1",
        "writes_own": not refused(lambda: (mine / "probe").touch()),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
