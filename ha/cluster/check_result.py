"""What one check of ``nnha doctor`` has found.  Pure."""

from collections.abc import Mapping
from enum import StrEnum

from ha.record import dataclass


class Severity(StrEnum):
    """How severe a finding of a check is."""

    OK = "ok"
    WARN = "warn"
    """The cluster works, but an operator should know of this."""
    FAIL = "fail"
    """Something does not work, or will not when it is needed."""
    UNKNOWN = "unknown"
    """The check could not be made from this machine."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result; ``next``, what to do, is empty if no problem was found."""

    check: str
    verdict: Severity
    found: str
    next: str = ""

    def as_json(self) -> Mapping[str, object]:
        """Return the finding as JSON, whose keys are fixed."""
        return {
            "check": self.check,
            "verdict": self.verdict.value,
            "found": self.found,
            "next": self.next or None,
        }


def ok(check: str, found: str) -> Finding:
    """Return the finding that there is no problem."""
    return Finding(check, Severity.OK, found)


def warn(check: str, found: str, then: str) -> Finding:
    """Return a finding of a problem with which the cluster still works."""
    return Finding(check, Severity.WARN, found, then)


def fail(check: str, found: str, then: str) -> Finding:
    """Return a finding of something that does not work."""
    return Finding(check, Severity.FAIL, found, then)


def unknown(check: str, found: str, then: str = "") -> Finding:
    """Return a finding of something that could not be examined."""
    return Finding(check, Severity.UNKNOWN, found, then)
