"""Carry out the steps of a page on the hosts of the lab."""

import difflib
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from tests.hosts.lab import Daemon, Host, Lab
from tests.hosts.page import Kind, Step, shape, shown

OPERATOR: Final = "host4"
_END: Final = "pkill -f '{command}$'; while pgrep -f '{command}$' >/dev/null; do sleep 0.1; done"


def walk(lab: Lab, steps: Iterable[Step]) -> float:
    """Carry the steps out in their order; return the seconds that they took.

    Raises:
        AssertionError: at the first step that fails, or whose page shows something else.
    """
    began = time.monotonic()
    for step in steps:
        at = time.monotonic()
        hosts = [lab.hosts[name] for name in step.hosts]
        if step.kind is Kind.RESTART:
            _restart(lab, hosts, step)
        else:
            started = [daemon for host in hosts for daemon in _carry_out(host, step)]
            for daemon in started:
                daemon.wait_ready()
        where = ",".join(step.hosts)
        sys.stderr.write(
            f"  {time.monotonic() - at:6.2f} s  line {step.line}: {step.kind} on {where}\n"
        )
    return time.monotonic() - began


def _carry_out(host: Host, step: Step) -> Sequence[Daemon]:
    """Carry a step out on one host; return the daemons that are to be ready before the next."""
    match step.kind:
        case Kind.FILE:
            host.write(step.path, step.text)
            if step.user != "root":
                host.must(f"chown {step.user}: {step.path}")
        case Kind.RUN:
            host.must(f"{_place(step)}set -e\n{step.text}", step.user)
        case Kind.DAEMON:
            return [host.start(f"exec {command}", step.user) for command in step.text.splitlines()]
        case Kind.BACKGROUND:
            host.start(step.text, step.user)
        case Kind.SHOWN:
            for command, expected in shown(step.text):
                printed = host.run(f"{_place(step)}{command}", step.user).output
                _compare(command, expected, printed, step.line)
        case Kind.RESTART:
            raise AssertionError("a restart takes the hosts one after the other")
        case _:
            assert_never(step.kind)
    return ()


def _place(step: Step) -> str:
    return f"mkdir -p {step.path} && cd {step.path}\n" if step.path else ""


def _restart(lab: Lab, hosts: Sequence[Host], step: Step) -> None:
    """Restart a daemon on one host after the other, each when the cluster is healthy again."""
    for host in hosts:
        command = step.text.strip()
        host.must(_END.format(command=command), step.user)
        host.start(f"exec {command}", step.user).wait_ready()
        lab.hosts[OPERATOR].must("until nnha status --check; do sleep 1; done")


def _compare(command: str, expected: str, printed: str, line: int) -> None:
    want, have = shape(expected), shape(printed)
    if want == have:
        return
    changes = difflib.unified_diff(want.splitlines(), have.splitlines(), "page", "run", lineterm="")
    raise AssertionError(
        f"line {line}: `{command}` prints something else than the page shows:\n"
        + "\n".join(changes)
        + f"\nas it was printed:\n{printed}"
    )
