"""A daemon's heap gives back what is free."""

import subprocess
import sys


def test_freed_memory_goes_back_to_the_system() -> None:
    """Blocks below the limit for mmap, one in two of them freed: only a trim gives them back."""
    said = """
from pathlib import Path
from ha.daemon.process import lean_heap

def resident():
    line = next(l for l in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in l)
    return int(line.split()[1])

blocks = [bytes(60_000) + b"x" for _ in range(1000)]
del blocks[::2]
before = resident()
lean_heap()
assert resident() < before - 20_000, (before, resident())
"""
    subprocess.run([sys.executable, "-c", said], check=True, timeout=60)
