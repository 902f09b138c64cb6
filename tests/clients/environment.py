"""A Python with the other clients, made once for each machine from a lock of its own.

They cannot be installed next to ours: snakebite-py3 wants a protobuf that is years older.
"""

import os
import subprocess
import sys
import tempfile
import venv
import zlib
from pathlib import Path
from typing import Final

LOCK: Final = Path(__file__).with_name("requirements.lock")
INSTALL_SECONDS: Final = 300.0


def client_python() -> Path:
    """Return its interpreter; make the environment, named after its lock, if it is not there."""
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / "nnha" / "clients"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache / f"{version}-{zlib.crc32(LOCK.read_bytes()):08x}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as scratch:
            made = Path(scratch) / "made"
            _make(made)
            made.rename(folder)
    return folder / "bin" / "python"


def _make(folder: Path) -> None:
    venv.create(folder, with_pip=True)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    command = [str(folder / "bin" / "python"), *install, "--require-hashes", "-r", str(LOCK)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


def run_script(script: Path, *arguments: str, deadline_seconds: float = 120.0) -> str:
    """Return what a script prints in that environment; fail if the script does."""
    done = subprocess.run(
        [str(client_python()), str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=deadline_seconds,
        check=False,
    )
    assert done.returncode == 0, f"{script.name}: {done.stdout}\n{done.stderr}"
    return done.stdout
