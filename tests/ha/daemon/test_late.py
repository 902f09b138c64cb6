"""Modules that are loaded late are whole when their loader returns."""

import subprocess
import sys

_BOTH_AT_ONCE = """
import asyncio, sys
sys.setswitchinterval(1e-6)
from ha.daemon.lazy_import import load_late

async def use(module, name):
    await load_late(module)
    getattr(sys.modules[module], name)

async def main():
    await asyncio.gather(*(use(*one) for one in [("aiohttp.web", "Application"),
                                                 ("aiohttp", "ClientSession")] * 4))

asyncio.run(main())
"""


def test_two_that_load_parts_of_one_package_both_get_it_whole() -> None:
    """Load a server while a segment is fetched: one of both got half of aiohttp."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", _BOTH_AT_ONCE], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
