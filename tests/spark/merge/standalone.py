"""A Spark standalone cluster on loopback: a master and workers, started by their classes.

The scripts that would start them (sbin) are not in PySpark's wheel.  Each process has a directory
of its own to stand in, so that nothing is found by accident.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from ha.daemon.java import find_jars, find_java, quick_start_flags

_DEPLOY = "org.apache.spark.deploy"
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "sun.nio.ch", "sun.nio.cs", "sun.security.action",
)  # fmt: skip
"""What Spark's own scripts open to its classes."""
DEADLINE_SECONDS = 60.0


@contextmanager
def standalone(folder: Path, *, workers: int) -> Iterator[str]:
    with ExitStack() as stack:
        master = stack.enter_context(
            _process(folder / "master", f"{_DEPLOY}.master.Master", "--port", "0")
        )
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        logs = [stack.enter_context(_worker(folder / f"worker-{n}", url)) for n in range(workers)]
        for log in logs:
            _said(log, r"(Successfully registered) with master")
        yield url


def _worker(home: Path, url: str) -> AbstractContextManager[Path]:
    limits = ("--cores", "1", "--memory", "600m", "--work-dir", str(home / "work"))
    return _process(home, f"{_DEPLOY}.worker.Worker", *limits, url)


@contextmanager
def _process(home: Path, name: str, *arguments: str) -> Iterator[Path]:
    """Run a JVM that stands in ``home`` and logs to ``home``/log, until the block ends."""
    home.mkdir(parents=True)
    java, jars = find_java(), find_jars()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(jars.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # else a worker looks for Spark's sources
        "SPARK_LOCAL_DIRS": str(home),
        "PYSPARK_PYTHON": sys.executable,
    }
    flags = quick_start_flags(java, heap_megabytes=256)
    flags += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    command = [
        str(java.executable), *flags, "-cp", f"{jars}/*", name, "--host", "127.0.0.1",
        "--webui-port", "0", *arguments,
    ]  # fmt: skip
    log = home / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=home, env=environ, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(DEADLINE_SECONDS / 4)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text("utf-8", "replace")):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"{log} does not say {pattern!r}: {log.read_text('utf-8', 'replace')}")
