"""Clients that write and read files through Hadoop's own client, while the cluster is struck.

Run as a process of its own on the file clients' host: ``python -m`` this module, with a plan as
JSON on its command line.  On SIGTERM it lets the calls that are under way end, waits until every
block has all its replicas, reads all files again, and writes down what came of it.
"""

import json
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from deploy.local.cluster.java import find_java
from deploy.local.cluster.processes import Supervisor
from deploy.local.workload.file_workload import FileCall, FileWorkload
from deploy.local.workload.java_client import open_java_client, start_java_client
from tests.local_services import wait_until_whole

FIRST_CALLS = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What such a process is to do; ``outcome`` is the file for what came of it."""

    seed: int
    conf_dir: str
    directory: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the calls on files."""

    acknowledged: int
    failed: int
    """Of these it is not known what came of them; no byte that they left may be wrong."""
    right_bytes: int
    wrong: tuple[str, ...]
    """Files that have other bytes than were acknowledged, that cannot be read, or stay open."""
    errors: tuple[str, ...]
    """Of the calls that failed: when, which, and why."""


def argv(plan: Plan) -> list[str]:
    return [sys.executable, "-m", __name__, json.dumps(asdict(plan))]


def started(plan: Plan) -> bool:
    return _begun(plan).exists()


def outcome_of(plan: Plan) -> Outcome:
    """Return what a process that has ended wrote down.  Raise OSError or ValueError without it."""
    found = json.loads(Path(plan.outcome).read_text())
    return Outcome(**{**found, "wrong": tuple(found["wrong"]), "errors": tuple(found["errors"])})


def _begun(plan: Plan) -> Path:
    return Path(f"{plan.outcome}.begun")


def _play(plan: Plan, ending: threading.Event) -> Outcome:
    own = Path(plan.directory)
    own.mkdir()
    with Supervisor(own) as supervisor:
        java = find_java(wrapper_directory=own)
        process = start_java_client(supervisor, java=java, conf_dir=Path(plan.conf_dir))
        with open_java_client(process) as client:
            files = FileWorkload(client, root="/files", seed=plan.seed)
            files.start()
            files.wait_for_more(FIRST_CALLS, deadline_seconds=180.0)
            _begun(plan).touch()
            ending.wait()
            files.stop()
            wait_until_whole(files)
            right = files.check_all()
            failed = [_line(call) for call in files.errors()]
            return Outcome(
                files.acknowledged(), len(failed), right, tuple(files.wrong), tuple(failed)
            )


def _line(call: FileCall) -> str:
    ended = datetime.fromtimestamp(time.time() - time.monotonic() + call.ended, UTC)
    return f"{ended.isoformat()} {call.kind} {call.path}: {call.error}"


def main() -> None:
    plan = Plan(**json.loads(sys.argv[1]))
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    Path(plan.outcome).write_text(json.dumps(asdict(_play(plan, ending))))


if __name__ == "__main__":
    main()
