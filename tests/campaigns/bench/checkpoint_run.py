"""One merge in a process of its own, watched from outside: time, CPU and memory.

As a program it is that process:
``python -m tests.campaigns.bench.checkpoint_run ENGINE IMAGE EDITS OUT``.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ha.daemon.logs import configure_logging
from tests.campaigns.bench.process_tree import Watch

_LIMIT_SECONDS: Final = 1800.0
SINGLE, SPARK = "single", "spark"


@dataclass(frozen=True, slots=True)
class Run:
    """A merge that was done.

    ``cpu_seconds`` are those of all processes while it was at work; what Spark took to start is
    apart.  Memory is what was resident at most, in bytes.
    """

    image: Path
    seconds: float
    cpu_seconds: float
    start_seconds: float
    start_cpu_seconds: float
    driver_bytes: int
    jvm_bytes: int
    worker_bytes: int
    inodes: int
    single_process_because: str | None
    stages: Mapping[str, float]

    def told(self) -> str:
        start = (
            f", after {self.start_seconds:.1f} s for Spark's start" if self.start_seconds else ""
        )
        memory = f"{self.driver_bytes / 1e6:,.0f} MB"
        if self.jvm_bytes:
            others = f"JVM {self.jvm_bytes / 1e6:,.0f}, worker {self.worker_bytes / 1e6:,.0f}"
            memory = f"driver {memory}, {others}"
        return f"CPU {self.cpu_seconds:.1f} s, {memory}{start}"


def run(engine: str, image: Path, edits: Path, out: Path) -> Run:
    """Merge in a new process.

    Raises:
        RuntimeError: if it failed; says what it printed.
    """
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", __name__, engine, str(image), str(edits), str(out)]
    errors = out / "stderr.txt"
    with (
        errors.open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        Watch(process.pid) as watch,
    ):
        assert process.stdout is not None
        begin, end, told = 0.0, 0.0, {}
        for line in process.stdout:
            if line.startswith("begin"):
                begin = watch.now()
            elif line.startswith("{"):
                end, told = watch.now(), json.loads(line)
        process.wait(_LIMIT_SECONDS)
    if not told:
        raise RuntimeError(f"{' '.join(command)} failed: {errors.read_text()[-2000:]}")
    tree = watch.tree
    return Run(
        image=Path(told["image"]),
        seconds=told["seconds"],
        cpu_seconds=end - begin,
        start_seconds=told["start_seconds"],
        start_cpu_seconds=begin,
        driver_bytes=tree.driver_peak(),
        jvm_bytes=tree.jvm_peak(),
        worker_bytes=tree.worker_peak(),
        inodes=told["inodes"],
        single_process_because=told["because"],
        stages=told["stages"],
    )


def _single(image: Path, edits: Path, out: Path) -> dict[str, object]:
    from namenode_sim.checkpoint.merge import merge

    _say("begin")
    began = time.monotonic()
    done = merge(image, edits, out)
    seconds = time.monotonic() - began
    return {"image": str(done.image), "seconds": seconds, "start_seconds": 0.0,
            "inodes": done.inodes, "because": None, "stages": {}}  # fmt: skip


def _spark(image: Path, edits: Path, out: Path) -> dict[str, object]:
    from spark.engine.session import SparkSettings, spark_started
    from spark.merge.job import merge_on

    with spark_started(SparkSettings("local[2]", out / "scratch")) as started:
        _say("begin")
        began = time.monotonic()
        done = merge_on(started.engine, image, edits, out, out / "work")
        seconds = time.monotonic() - began
        told = {"image": str(done.merged.image), "seconds": seconds,
                "start_seconds": started.seconds, "inodes": done.merged.inodes,
                "because": done.single_process_because, "stages": dict(done.seconds)}  # fmt: skip
        # Printed before Spark ends, so that what its end takes is not counted.
        _say(json.dumps(told))
    return {}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    configure_logging("bench", level="error")
    engine, *paths = sys.argv[1:]
    found = {SINGLE: _single, SPARK: _spark}[engine](*map(Path, paths))
    if found:
        _say(json.dumps(found))
