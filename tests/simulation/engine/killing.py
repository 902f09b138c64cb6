"""Run named tests with a bug planted: each must fail then, and pass without it.

For bugs that no drawn world can show.  `python -m tests.simulation.engine.killing journal` prints
what became of each of them, as one JSON object.
"""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from tests import ROOT
from tests.simulation.engine.mutants import Mutant, planted
from tests.simulation.engine.simulation import named

_EACH_SECONDS: Final = 40


@dataclass(slots=True)
class Killing:
    """What became of one planted bug at its killer; parametrised killers have many cases."""

    ran: int = 0
    failed_without: str = ""
    """Which case fails although there is no bug, and how; every one should pass."""
    failed: str = ""
    """Which case failed with it, and how."""

    @property
    def proven(self) -> bool:
        """Whether the killer distinguishes the bug from the product."""
        return self.ran > 0 and not self.failed_without and bool(self.failed)


def kill(simulation: str, names: Sequence[str] = ()) -> dict[str, Killing]:
    """Run the killers of these bugs, or of all, in a process of their own."""
    command = [sys.executable, "-m", "tests.simulation.engine.killing", simulation, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode not in (0, 1) or not lines:
        raise RuntimeError(f"the killers did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {name: Killing(**told) for name, told in json.loads(lines[-1]).items()}


class _Killers:
    """Runs every case without a bug, and then once with each bug that it is to kill."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self.killings = {mutant.name: Killing() for mutant in mutants}
        self._of: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in mutants:
            self._of[mutant.killer].append(mutant)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> bool:  # noqa: ANN401
        of_all_cases = item.nodeid.partition("[")[0]
        mine = [mutant for name in {item.nodeid, of_all_cases} for mutant in self._of[name]]
        alive = [mutant for mutant in mine if not self.killings[mutant.name].failed]
        if not alive:
            return True  # its other cases have done it; the suite itself runs them all
        without = [f"{item.name}, {when}: {what}" for when, what in _failures(item)]
        for mutant in alive:
            killing = self.killings[mutant.name]
            killing.ran += 1
            killing.failed_without = killing.failed_without or "; ".join(without)
            with planted(mutant):
                for when, what in _failures(item):
                    if when == "call":
                        killing.failed = killing.failed or f"{item.name}: {what}"
        return True


def _failures(item: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    item._initrequest()
    # Nothing is kept for the next case: it may be left out.
    for report in runtestprotocol(item, nextitem=None, log=False):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            told = str(report.longrepr) if crash is None else crash.message
            yield report.when, told.strip().splitlines()[0][:160] if told.strip() else "it failed"


def _main(simulation: str, *names: str) -> int:
    mutants = [m for m in named(simulation).mutants if m.killer and (not names or m.name in names)]
    killers = _Killers(mutants)
    options = ["-q", "-p", "no:cacheprovider", "-W", "default"]
    arguments = [*options, f"--timeout={_EACH_SECONDS}", *sorted({m.killer for m in mutants})]
    code = pytest.main(arguments, plugins=[killers])
    killings: Mapping[str, Killing] = killers.killings
    told = {name: asdict(killing) for name, killing in killings.items()}
    sys.stdout.write(f"\n{json.dumps(told)}\n")
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        sys.stderr.write(f"pytest ended with {code!r}\n")
        return 2
    return 0 if all(killing.proven for killing in killings.values()) else 1


if __name__ == "__main__":
    raise SystemExit(_main(*sys.argv[1:]))
