"""What a run of pytest has done, as its report says: failures, skips, time, what was shown."""

import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.needs import need_of

SEEDS_PLAYED = "seeds played"
BUGS_FOUND = "planted bugs found"
FAULTS_SURVIVED = "faults survived"
SHOWN = (SEEDS_PLAYED, BUGS_FOUND, FAULTS_SURVIVED)
"""What tests count with pytest's ``record_property``: how much stands behind "passed"."""

_REASON_LETTERS = 200


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the tests of one run."""

    tests: int = 0
    """All of them, skipped ones too."""
    failures: tuple[str, ...] = ()
    """For each failing test its id and one line of the reason."""
    skips: tuple[str, ...] = ()
    """One reason for each skipped test."""
    shown: Mapping[str, int] = field(default_factory=dict)
    seconds_by_file: Mapping[str, float] = field(default_factory=dict)


def read_report(junit_xml: str) -> Report:
    """Read pytest's report, of the family that names the file of each test.

    A skip is a failure where this machine has what the test needs, or where its reason names no
    need that ``tests/needs.py`` knows.
    """
    tests, failures, skips = 0, list[str](), list[str]()
    shown, seconds = Counter[str](), defaultdict[str, float](float)
    for case in ET.fromstring(junit_xml).iter("testcase"):
        tests += 1
        file = str(case.get("file") or case.get("classname"))
        name = f"{file}::{case.get('name')}"
        seconds[file] += float(case.get("time", 0))
        for counted in case.iter("property"):
            if counted.get("name") in SHOWN:
                shown[counted.get("name", "")] += int(counted.get("value", 0))
        for kind in ("failure", "error"):
            if (found := case.find(kind)) is not None:
                failures.append(f"{name}: {_reason(found)}")
                break
        skipped = case.find("skipped")
        if skipped is not None and skipped.get("type") != "pytest.xfail":
            skips.append(_reason(skipped))
            if wrong := _wrong_with(_reason(skipped)):
                failures.append(f"{name}: {wrong}")
    return Report(tests, tuple(failures), tuple(skips), shown, seconds)


def _reason(element: ET.Element) -> str:
    text = (element.get("message") or "no reason given").strip()
    return text.splitlines()[0][:_REASON_LETTERS]


def _wrong_with(skip: str) -> str:
    """Return why a skip counts as a failure; empty where it does not."""
    need = need_of(skip)
    if need is None:
        return f"skipped for a reason that tests/needs.py does not know: {skip}"
    return f"skipped ({skip}), although it is here" if need.here else ""
