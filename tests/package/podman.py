"""Podman where this process has its own storage and its own view of the mounts.

Machines that are containers or small virtual ones themselves have three traps: crun refuses a
hierarchy of cgroups of both versions, so the second is unmounted, in our own mount namespace only;
without CAP_SYS_RESOURCE a container cannot raise its limits, so they are set low; and another
user's images and networks are none of ours.
"""

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_CLONE_NEWNS: Final = 0x20000
_MOST_LETTERS: Final = 40
"""Where the path is long, conmon 2.1 starts no container again; 15 letters were well, 83 not."""
_UNIFIED: Final = Path("/sys/fs/cgroup/unified")

_STORAGE: Final = """\
[storage]
driver = "overlay"
graphroot = "{folder}/images"
runroot = "{folder}/run"
"""
_CONTAINERS: Final = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
[network]
network_config_dir = "{folder}/networks"
"""


def use_own_storage(folder: Path) -> None:
    """Make this process and its children use podman with all its files below ``folder``.

    It must have one thread only, and be root's.

    Raises:
        OSError: it may not have its own mounts.
        ValueError: the folder's name is too long: restart policies would do nothing.
    """
    if len(str(folder)) > _MOST_LETTERS:
        raise ValueError(f"{folder} has more than {_MOST_LETTERS} letters")
    for name in ("images", "run", "tmp", "volumes", "networks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for variable, name, text in (
        ("CONTAINERS_STORAGE_CONF", "storage.conf", _STORAGE),
        ("CONTAINERS_CONF", "containers.conf", _CONTAINERS),
    ):
        (folder / name).write_text(text.format(folder=folder))
        os.environ[variable] = str(folder / name)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "this process may not have its own mounts")
    _quietly("mount", "--make-rprivate", "/")
    if _UNIFIED.is_mount():
        _quietly("umount", str(_UNIFIED))


def drop_storage(folder: Path) -> None:
    """Remove it, with the mount that podman leaves on it."""
    subprocess.run(
        ["umount", "-l", str(folder / "images" / "overlay")], check=False, capture_output=True
    )
    shutil.rmtree(folder, ignore_errors=True)


def podman(*words: str, timeout_seconds: float = 300.0) -> str:
    """Return what podman prints; its complaints are part of the error.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    done = subprocess.run(
        ["podman", *words], check=False, capture_output=True, text=True, timeout=timeout_seconds
    )
    if done.returncode:
        raise subprocess.CalledProcessError(
            done.returncode, ["podman", *words], done.stdout, done.stderr
        )
    return done.stdout.strip()


def inspected(kind: str, name: str) -> dict[str, object]:
    found = json.loads(podman(kind, "inspect", name))[0]
    assert isinstance(found, dict)
    return found


def _quietly(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
