"""Each alert rule fires when it should and at no other time, by Prometheus' own ``promtool``."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests import needs
from tests.deploy.monitoring.test_monitoring_files import FOLDER, alerts

CASES: Final = sorted((FOLDER / "tests").glob("*.yml"))
needs_prometheus = needs.PROMETHEUS.mark


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool", path=needs.SEARCHED)
    assert program is not None
    return subprocess.run(
        [program, *map(str, words)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@needs_prometheus
@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.stem)
def test_each_rule_does_what_its_cases_say(cases: Path) -> None:
    told = promtool("test", "rules", cases)
    assert told.returncode == 0, told.stdout + told.stderr


@needs_prometheus
def test_a_rule_that_cannot_fire_is_found(tmp_path: Path) -> None:
    """Check the rule that was there first: a sum of no series is nothing, and never 0."""
    rules = (FOLDER / "alerts.yml").read_text()
    broken = re.sub(r" or 0 \* count by \(cluster\) \(up\{[^}]*\}\)", "", rules)
    assert broken != rules
    (tmp_path / "alerts.yml").write_text(broken)
    (tmp_path / "tests").mkdir()
    head, *cases = (FOLDER / "tests/minutes.yml").read_text().split("- name: ")
    of_it = (f"- name: {case}" for case in cases if case.startswith("'NnhaNoActive"))
    (tmp_path / "tests" / "minutes.yml").write_text(head + "".join(of_it))
    told = promtool("test", "rules", tmp_path / "tests" / "minutes.yml")
    assert told.returncode != 0
    assert "NnhaNoActive" in told.stdout + told.stderr


@needs_prometheus
def test_the_configuration_is_one_for_prometheus() -> None:
    # The certificates that it names are the reader's.
    told = promtool("check", "config", "--syntax-only", FOLDER / "prometheus.yml")
    assert told.returncode == 0, told.stdout + told.stderr


def test_each_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    fires: set[str] = set()
    keeps_silent: set[str] = set()
    for path in CASES:
        for name, samples in re.findall(
            r'alertname="(\w+)"\}\)\'\n    eval_time: \w+\n    exp_samples: (.*)', path.read_text()
        ):
            (keeps_silent if samples == "[]" else fires).add(name)
    assert fires == keeps_silent == set(alerts())
