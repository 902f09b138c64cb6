"""The types of fencing: the target, the methods, and the outcomes."""

from enum import StrEnum
from typing import ClassVar, Final, get_args

from ha.conf.secrets import redact
from ha.record import dataclass

_DOES_NOTHING: Final = ("true", "/bin/true", "/usr/bin/true", ":", "exit 0")


class BadSpec(ValueError):
    """A line of ``dfs.ha.fencing.methods`` cannot be used; the message names the line and why."""


@dataclass(frozen=True, slots=True)
class Target:
    """The NameNode to fence: its ids, and the host and port of its (service) RPC."""

    nameservice: str
    namenode: str
    host: str
    port: int

    def __str__(self) -> str:
        """Return the form used in logs and messages."""
        return f"{self.nameservice}.{self.namenode} at {self.host}:{self.port}"


SSH_PORT: Final = 22


@dataclass(frozen=True, slots=True)
class SshMethod:
    """``sshfence`` or ``sshfence([user][:port])``: kill the NameNode over ssh."""

    USAGE: ClassVar = ("sshfence", "sshfence(user:port)")
    proves_gone: ClassVar = True
    user: str | None
    port: int

    def __str__(self) -> str:
        """Return the method as configured, without defaults."""
        port = "" if self.port == SSH_PORT else f":{self.port}"
        return f"sshfence({self.user or ''}{port})" if self.user or port else "sshfence"


@dataclass(frozen=True, slots=True)
class ShellMethod:
    """``shell(command)``: run a command on this machine; exit status 0 means fenced."""

    USAGE: ClassVar = ("shell(command)",)
    command: str

    @property
    def proves_gone(self) -> bool:
        return self.command.strip() not in _DOES_NOTHING

    def __str__(self) -> str:
        """Return the method with secrets replaced, for logs, pages and reports."""
        return f"shell({redact(self.command)})"


@dataclass(frozen=True, slots=True)
class KillMethod:
    """``kill``: kill the NameNode's process if it runs on this machine."""

    USAGE: ClassVar = ("kill",)
    proves_gone: ClassVar = True

    def __str__(self) -> str:
        return "kill"


@dataclass(frozen=True, slots=True)
class JournalEpochMethod:
    """``journal-epoch``: do nothing, and rely on the JournalNodes to refuse the old writer.

    It replaces ``shell(/bin/true)``.  Edits are safe; the old active may serve reads until its
    lease ends (docs/reference/fencing.md#journal-epoch).
    """

    USAGE: ClassVar = ("journal-epoch",)
    proves_gone: ClassVar = False

    def __str__(self) -> str:
        return "journal-epoch"


MethodSpec = SshMethod | ShellMethod | KillMethod | JournalEpochMethod
"""``proves_gone``: if it succeeds, the old active cannot serve any client."""


def method_names(*, in_full: bool = False) -> str:
    """Return the names of all methods as text; ``in_full`` with each form of arguments."""
    *names, last = (
        name for one in get_args(MethodSpec) for name in one.USAGE[: None if in_full else 1]
    )
    return f"{', '.join(names)} or {last}"


class FencingOutcome(StrEnum):
    """The outcome of one method."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It ended without having fenced the target."""
    TIMED_OUT = "timed out"
    """It was stopped at its deadline, and its processes were killed."""
    NOT_RUN = "not run"
    """It could not be started, or no time was left for it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a method; ``output`` is the end of its output, for display."""

    method: str
    outcome: FencingOutcome
    detail: str
    duration_seconds: float
    output: str = ""
    proves_gone: bool = False
    """Whether a success proves that the target cannot serve any client."""


@dataclass(frozen=True, slots=True)
class FencingReport:
    """All attempts in order; the target is fenced if the last one succeeded."""

    target: Target
    attempts: tuple[Attempt, ...]
    duration_seconds: float

    @property
    def fenced(self) -> bool:
        """Whether a method succeeded."""
        return any(attempt.outcome is FencingOutcome.SUCCEEDED for attempt in self.attempts)

    @property
    def proven_gone(self) -> bool:
        """Whether a success proves that the target cannot serve even reads."""
        return any(
            attempt.outcome is FencingOutcome.SUCCEEDED and attempt.proves_gone
            for attempt in self.attempts
        )

    def __str__(self) -> str:
        """Return the result and all attempts in one line."""
        if not self.attempts:
            return f"{self.target} was not fenced: no fencing method is configured"
        verdict = "was fenced" if self.fenced else "could not be fenced"
        tries = "; ".join(f"{a.method} {a.outcome}: {a.detail}" for a in self.attempts)
        return f"{self.target} {verdict} in {self.duration_seconds:.1f} s ({tries})"
