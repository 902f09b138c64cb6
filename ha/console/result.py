"""How a command that changes something may end, in words, as JSON and as exit code.  Pure.

Every ending says what was attempted, what was found, how things stand now and what to do next.

See docs/reference/operations.md#form-of-an-answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY
from enum import StrEnum
from typing import Final, assert_never

from ha.console import exit_codes
from ha.record import dataclass

API_VERSION: Final = "nnha/v1"
"""Of every JSON document that a command prints."""


class CommandOutcome(StrEnum):
    """What is known of the change."""

    DONE = "done"
    PLANNED = "planned"
    """--dry-run: it would be done."""
    REFUSED = "refused"
    """Nothing was changed."""
    FAILED = "failed"
    """It was begun and is not done; the state is known."""
    UNKNOWN = "unknown"
    """It may have been done, or may still be."""
    UNREACHABLE = "unreachable"
    """A server that the command needs did not answer; nothing was changed."""
    UNAUTHORISED = "unauthorised"
    """We may not ask for this; nothing was changed."""

    @property
    def exit_code(self) -> int:
        """The process's exit code."""
        match self:
            case CommandOutcome.DONE | CommandOutcome.PLANNED:
                return exit_codes.DONE
            case CommandOutcome.REFUSED:
                return exit_codes.REFUSED
            case CommandOutcome.FAILED:
                return exit_codes.FAILED
            case CommandOutcome.UNKNOWN:
                return exit_codes.OUTCOME_UNKNOWN
            case CommandOutcome.UNREACHABLE:
                return exit_codes.UNREACHABLE
            case CommandOutcome.UNAUTHORISED:
                return exit_codes.UNAUTHORISED
        assert_never(self)


class Code(StrEnum):
    """Stable names of endings, for scripts and for docs/operations.md."""

    DONE = "DONE"
    ALREADY_SO = "ALREADY_SO"
    WOULD_BE_DONE = "WOULD_BE_DONE"
    NOT_CONFIRMED = "NOT_CONFIRMED"
    NO_CANDIDATE = "NO_CANDIDATE"
    CANDIDATE_UNFIT = "CANDIDATE_UNFIT"
    NO_ACTIVE = "NO_ACTIVE"
    ACTIVE_PRESENT = "ACTIVE_PRESENT"
    TWO_ACTIVE = "TWO_ACTIVE"
    PAUSED = "PAUSED"
    NOT_AUTOMATIC = "NOT_AUTOMATIC"
    NO_ANSWER = "NO_ANSWER"
    NO_SUCH_NODE = "NO_SUCH_NODE"
    NO_SUCH_RECORD = "NO_SUCH_RECORD"
    NOT_FORMATTED = "NOT_FORMATTED"
    BAD_NOTICE = "BAD_NOTICE"
    BAD_CONFIGURATION = "BAD_CONFIGURATION"
    JOURNAL_REFUSED = "JOURNAL_REFUSED"
    HAND_OVER_FAILED = "HAND_OVER_FAILED"
    NOT_SEEN_BY_ALL = "NOT_SEEN_BY_ALL"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    ZKFC_UNREACHABLE = "ZKFC_UNREACHABLE"
    ZOOKEEPER_UNREACHABLE = "ZOOKEEPER_UNREACHABLE"
    ZOOKEEPER_REFUSED = "ZOOKEEPER_REFUSED"
    ACCESS_DENIED = "ACCESS_DENIED"


@dataclass(frozen=True, slots=True)
class Reason:
    """What speaks for or against one node, and the command that helps; empty where none does."""

    node: str
    text: str
    next: str = ""
    fit: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """One command's result."""

    command: str
    outcome: CommandOutcome
    code: Code
    message: str
    """What was attempted and what was found."""
    _: KW_ONLY
    hint: str = ""
    """What to do next; may be empty after a success."""
    target: str | None = None
    active_before: str | None = None
    active_now: str | None = None
    seconds: float | None = None
    reasons: tuple[Reason, ...] = ()

    def as_json(self) -> Mapping[str, object]:
        """Return fixed keys; what is not known is null."""
        return {
            "apiVersion": API_VERSION,
            "command": self.command,
            "outcome": self.outcome.value,
            "exit_code": self.outcome.exit_code,
            "code": self.code.value,
            "message": self.message,
            "hint": self.hint or None,
            "target": self.target,
            "active_before": self.active_before,
            "active_now": self.active_now,
            "seconds": self.seconds,
            "reasons": [
                {"node": one.node, "fit": one.fit, "text": one.text, "next": one.next or None}
                for one in self.reasons
            ],
        }

    def as_lines(self) -> Iterator[str]:
        """Yield the lines of a result; the first line has the outcome."""
        yield f"{self._head()}{self.message}"
        names = max((len(one.node) for one in self.reasons), default=0)
        texts = max((len(one.text) for one in self.reasons if one.next), default=0)
        for one in self.reasons:
            arrow = f"  → {one.next}" if one.next else ""
            yield f"  {one.node:<{names}}  {one.text:<{texts}}{arrow}".rstrip()
        if self.hint:
            yield f"Next: {self.hint}"

    def _head(self) -> str:
        match self.outcome:
            case CommandOutcome.DONE:
                return ""
            case CommandOutcome.PLANNED:
                return "WOULD BE DONE (nothing was changed): "
            case CommandOutcome.REFUSED:
                return "REFUSED (nothing was changed): "
            case CommandOutcome.FAILED:
                return "FAILED: "
            case CommandOutcome.UNKNOWN:
                return "OUTCOME UNKNOWN: "
            case CommandOutcome.UNREACHABLE:
                return "UNREACHABLE (nothing was changed): "
            case CommandOutcome.UNAUTHORISED:
                return "NOT AUTHORISED (nothing was changed): "
        assert_never(self.outcome)


class Ended(Exception):
    """A command has come to its end below; it carries how."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.message)
        self.ending = ending
