"""Tests take of the log only lines of the part that they test; tests/log_lines.py says why."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests import PACKAGES, ROOT

THE_DOOR = ("tests/log_lines.py", "tests/architecture/test_log_lines.py")
WHOLE_LOG = re.compile(r"\b(capture_logs|LogCapture)\b")
CAPTURED = re.compile(r"\bcaptured\(([^)]*)\)")
NAMED_EVENTS = re.compile(r'"([a-z_.]+)"')


def loose(text: str, product: str) -> Iterator[str]:
    """Yield where a test takes lines that may be of another part, or waits for none that comes.

    ``product`` is all of its text: a test that nothing is logged could not fail with an event that
    no string there begins with.
    """
    if found := WHOLE_LOG.search(text):
        yield f"{found[1]}: take tests.log_lines.captured, which leaves out what other parts log"
    if "from tests.log_lines import" not in text:
        return
    for call in CAPTURED.finditer(text):
        names = NAMED_EVENTS.findall(call[1])
        if not names:
            yield f"{call[0]} names no event"
        for name in names:
            if f'"{name}' not in product:
                yield f"{name} begins no event of the product"


@cache
def texts(package: str) -> dict[str, str]:
    paths: list[Path] = sorted((ROOT / package).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def test_no_test_takes_lines_of_the_log_that_may_be_of_another_part() -> None:
    product = "".join(text for package in PACKAGES for text in texts(package).values())
    tests = {name: text for name, text in texts("tests").items() if name not in THE_DOOR}
    found = [f"{name}: {why}" for name, text in tests.items() for why in loose(text, product)]
    assert not found, "\n".join(found)
    assert sum("from tests.log_lines import captured" in text for text in tests.values()) > 30


def test_each_loose_look_at_the_log_is_found() -> None:
    begin, product = "from tests.log_lines import captured\n", 'log.info("kerberos.not_renewed")'
    named = f'{begin}with captured(\n    "kerberos.", here=True\n) as lines:\n    pass\n'
    assert list(loose(named, product)) == []
    assert list(loose(named, "")) == ["kerberos. begins no event of the product"]
    for call in ("captured()", "captured(here=True)", 'captured("")', "captured(*names)"):
        assert list(loose(f"{begin}with {call} as lines:\n", product)) == [f"{call} names no event"]
    for taken in ("from structlog.testing import capture_logs", "x = testing.LogCapture()"):
        (found,) = loose(taken, product)
        assert "take tests.log_lines.captured" in found
