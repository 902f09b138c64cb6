"""`haadmin -failover` in a process of its own, which is loaded and waits for the word.

In the bench's own process the command would share an interpreter with the threads of the client,
and a handshake would cost what they need.
"""

import io
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.demo.stage import ask_for_failover
from ha.cli.hadoop import haadmin

ANSWER_SECONDS: Final = 60.0


@contextmanager
def waiting_command(conf_dir: Path) -> Iterator[Callable[[str, str], None]]:
    """Ask for failovers from the first NameNode to the second; raise LocalClusterError."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(conf_dir, theirs), daemon=True)
    process.start()
    theirs.close()

    def answer() -> None:
        if not ours.poll(ANSWER_SECONDS):
            raise LocalClusterError(
                f"Asked haadmin for a failover; it has not ended within {ANSWER_SECONDS:g} s"
            )
        if told := ours.recv():
            raise LocalClusterError(told)

    def ask(old: str, new: str) -> None:
        ours.send((old, new))
        answer()

    try:
        answer()
        yield ask
    finally:
        ours.close()
        process.join(ANSWER_SECONDS)
        process.kill()


def _serve(conf_dir: Path, asked: Connection) -> None:
    """Print that it is loaded, and then of each failover why it failed, or nothing."""
    with redirect_stdout(io.StringIO()):
        haadmin.run(("--conf-dir", str(conf_dir), "-getAllServiceState"))
    asked.send("")
    while True:
        try:
            old, new = asked.recv()
        except EOFError:
            return
        try:
            ask_for_failover(conf_dir, old, new)
        except LocalClusterError as failure:
            asked.send(str(failure))
        else:
            asked.send("")
