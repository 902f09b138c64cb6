"""What an error means to the user of a command: how it ended, and what to do next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from files import errors
from files.cli.modes import BadMode
from files.cli.spelling import BadPath
from files.cli.tree import NoSuchPath
from files.errors import FilesError
from ha.console import exit_codes
from ha.console.result import CommandOutcome


class Code(StrEnum):
    """Stable names of failures, for scripts and for docs/files.md."""

    BAD_PATH = "BAD_PATH"
    NO_SUCH_PATH = "NO_SUCH_PATH"
    PATH_EXISTS = "PATH_EXISTS"
    UNFIT_PATH = "UNFIT_PATH"
    ACCESS_DENIED = "ACCESS_DENIED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    IN_SAFE_MODE = "IN_SAFE_MODE"
    NAMENODE_REFUSED = "NAMENODE_REFUSED"
    NO_ANSWER = "NO_ANSWER"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    COPY_FAILED = "COPY_FAILED"


class Unfit(Exception):
    """A command's own refusal, before anything was changed; the text says what to do instead."""

    def __init__(self, reason: str, code: Code, hint: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.hint = hint


class LocalFailure(Exception):
    """A file on this machine cannot be read or written."""


class HalfDone(Exception):
    """A copy that has ended in the middle; the text says what is left of it, and where."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one path of a command failed."""

    path: str
    outcome: CommandOutcome
    code: Code
    message: str
    hint: str = ""

    def as_json(self) -> Mapping[str, object]:
        """Return fixed keys."""
        return {
            "path": self.path,
            "outcome": self.outcome.value,
            "code": self.code.value,
            "message": self.message,
            "hint": self.hint or None,
        }

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}"
        return f"{text}\n→ {self.hint}" if self.hint else text


KNOWN: Final = (BadMode, BadPath, NoSuchPath, Unfit, LocalFailure, HalfDone, FilesError)
"""What a command reports of one path before it goes on with the next."""

_REFUSED: Final = CommandOutcome.REFUSED
_RIGHTS: Final = "nnha fs ls -d shows owner and mode; the owner or the superuser may change them"
_IDENTITY: Final = "who you are is proved as docs/files.md says, under which name"
_QUOTA: Final = "delete something (nnha fs rm --skip-trash), or have the quota raised"


def failure_of(path: str, error: Exception, user: str) -> Failure:
    """Return what an error of ``KNOWN`` means for a path that ``user`` named."""
    match error:
        case NoSuchPath():
            where = f"; its directory {error.parent} is not there either" if error.parent else ""
            hint = "nnha fs mkdir -p" if error.parent else "nnha fs ls shows what is there"
            text = f"no such file or directory{where}"
            return Failure(error.path, _REFUSED, Code.NO_SUCH_PATH, text, hint)
        case BadMode() | BadPath():
            return Failure(path, _REFUSED, Code.BAD_PATH, str(error))
        case Unfit():
            return Failure(path, _REFUSED, error.code, str(error), error.hint)
        case errors.Refused():
            return _refusal(path, error, user)
        case errors.Unreachable():
            return Failure(path, CommandOutcome.UNREACHABLE, Code.NO_ANSWER, str(error))
        case errors.OutcomeUnknown():
            return Failure(path, CommandOutcome.UNKNOWN, Code.OUTCOME_UNKNOWN, str(error))
        case _:
            return Failure(path, CommandOutcome.FAILED, Code.COPY_FAILED, str(error))


def _refusal(path: str, refused: errors.Refused, user: str) -> Failure:
    """Return what a NameNode's refusal means; it has changed nothing."""
    match refused:
        case errors.Denied():
            text = f"the NameNode does not let {user}: {refused.reason}"
            hint = _RIGHTS if refused.reason.startswith("Permission denied") else _IDENTITY
            return Failure(path, CommandOutcome.UNAUTHORISED, Code.ACCESS_DENIED, text, hint)
        case errors.NotFound():
            return Failure(path, _REFUSED, Code.NO_SUCH_PATH, refused.reason)
        case errors.AlreadyExists():
            return Failure(path, _REFUSED, Code.PATH_EXISTS, refused.reason)
        case errors.QuotaExceeded():
            return Failure(path, _REFUSED, Code.QUOTA_EXCEEDED, refused.reason, _QUOTA)
        case errors.InSafeMode():
            return Failure(path, _REFUSED, Code.IN_SAFE_MODE, refused.reason, "nnha safemode get")
        case _:
            kind = refused.java_class.rpartition(".")[2]
            return Failure(path, _REFUSED, Code.NAMENODE_REFUSED, f"{kind}: {refused.reason}")


def exit_code(failures: Iterable[Failure], *, changed: bool) -> int:
    """Return the exit code of a command: DONE without failures.

    Where some paths were changed and others failed, it is FAILED; where it is not known whether
    one was changed, OUTCOME_UNKNOWN.
    """
    outcomes = {one.outcome for one in failures}
    if not outcomes:
        return exit_codes.DONE
    if CommandOutcome.UNKNOWN in outcomes:
        return exit_codes.OUTCOME_UNKNOWN
    if changed or len(outcomes) > 1:
        return exit_codes.FAILED
    return outcomes.pop().exit_code
