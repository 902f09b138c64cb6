"""What a test leaves behind fails it: tests.balance, with planted leaks."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests import ROOT

TESTS: Final = """
import asyncio, os, signal, subprocess, sys, threading
import grpc.aio, pytest

ENDED = threading.Event()
SLEEPS = [sys.executable, "-c", "import signal; signal.pause()"]

def test_descriptor(): os.open("/", os.O_RDONLY)
def test_thread(): threading.Thread(target=ENDED.wait, name="left", daemon=True).start()
def test_process(): globals().update(process=subprocess.Popen(SLEEPS))
def test_nothing_more(): pass
async def test_task(): asyncio.create_task(asyncio.Event().wait())
async def test_channel(): grpc.aio.insecure_channel("127.0.0.1:1")

@pytest.fixture
def one(): yield os.open("/", os.O_RDONLY)
def test_of_a_fixture(one): pass

@pytest.fixture(scope="module")
def for_all():
    number = os.open("/", os.O_RDONLY)
    yield
    os.close(number)
def test_first_of_all(for_all): pass
def test_second_of_all(for_all): pass

def test_closed(): os.close(os.open("/", os.O_RDONLY))
async def test_nothing_of_a_loop():
    asyncio.create_task(asyncio.sleep(0))
    async with grpc.aio.insecure_channel("127.0.0.1:1"): pass
def test_ended(): threading.Thread(target=int).start()
def test_in_a_cycle():
    class File:
        def __init__(self):
            self.myself, self.number = self, os.open("/", os.O_RDONLY)
        def __del__(self): os.close(self.number)
    File()

def test_end():
    ENDED.set()
    process.kill()
    process.wait()
"""
LEFT: Final = {
    "test_descriptor": "descriptor",
    "test_thread": "thread left",
    "test_process": "process",
    "test_task": "task Task-",
    "test_channel": "channel of gRPC",
    "test_of_a_fixture": "descriptor",
}


def test_what_a_test_leaves_behind_fails_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "other_test.py").write_text("import os\n\ndef test_other(): os.open('/', 0)\n")
    waits_shortly = "import tests.balance as b; b.SETTLED_SECONDS = 0.2; b.WATCHED = 'test_it'"
    command = f"{waits_shortly}; import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", command, "-p", "tests.balance", "-p", "no:cacheprovider",
         "-p", "no:randomly", "-o", "asyncio_mode=auto", "-rE", "--tb=line", "--rootdir", tmp_path,
         tmp_path],
        cwd=ROOT, env=os.environ | {"COLUMNS": "400"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = [line for line in done.stdout.splitlines() if line.startswith("ERROR ")]
    assert len(said) == len(LEFT), done.stdout + done.stderr
    for line, (test, what) in zip(said, LEFT.items(), strict=True):
        assert f"::{test} " in line
        assert f"left behind: {what}" in line
