"""What a command about files loads before it asks anything: a fresh shell waits for it."""

import subprocess
import sys

import pytest

HEAVY = {"aiohttp", "grpc", "numpy", "prometheus_client", "pyarrow", "pyspark", "structlog"}


@pytest.mark.parametrize("module", ["listing", "changes"])
def test_a_command_without_blocks_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, ha.cli.main, files.cli.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())
