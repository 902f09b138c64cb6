"""Fencing's terms: the target, the methods, and the outcome."""

from enum import StrEnum
from typing import ClassVar, Final, get_args

from ha.conf.secrets import redact
from ha.record import dataclass

_DOES_NOTHING: Final = ("true", "/bin/true", "/usr/bin/true", ":", "exit 0")


class BadSpec(ValueError):
    """A line of ``dfs.ha.fencing.methods`` cannot be used; the message names the line and why."""


@dataclass(frozen=True, slots=True)
class Target:
    """The NameNode to make harmless: its ids and the host and port of its (service) RPC."""

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
        """Return it as configured, without what is the default."""
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
        """Return it with its secrets replaced, for logs, status pages and reports."""
        return f"shell({redact(self.command)})"


@dataclass(frozen=True, slots=True)
class KillMethod:
    """``kill``: kill the NameNode's process where it runs on this very machine."""

    USAGE: ClassVar = ("kill",)
    proves_gone: ClassVar = True

    def __str__(self) -> str:
        return "kill"


@dataclass(frozen=True, slots=True)
class JournalEpochMethod:
    """``journal-epoch``: touch nothing, and rely on the journal to refuse the old writer.

    What others write as ``shell(/bin/true)``.  Edits are safe with it; reads of the old active
    end with its read lease (docs/reference/fencing.md#journal-epoch).
    """

    USAGE: ClassVar = ("journal-epoch",)
    proves_gone: ClassVar = False

    def __str__(self) -> str:
        return "journal-epoch"


MethodSpec = SshMethod | ShellMethod | KillMethod | JournalEpochMethod
"""``proves_gone``: after its success the old active serves no client any more."""


def method_names(*, in_full: bool = False) -> str:
    """Return all methods in words, as a user may write them; ``in_full`` with every form."""
    *names, last = (
        name for one in get_args(MethodSpec) for name in one.USAGE[: None if in_full else 1]
    )
    return f"{', '.join(names)} or {last}"


class FencingOutcome(StrEnum):
    """What one method did."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It ran to its end and says that the target is not fenced."""
    TIMED_OUT = "timed out"
    """Its deadline passed; everything it had started was killed."""
    NOT_RUN = "not run"
    """It could not be started, or no time was left for it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One method's try.  ``output`` is the end of what it wrote, for people."""

    method: str
    outcome: FencingOutcome
    detail: str
    duration_seconds: float
    output: str = ""
    proves_gone: bool = False
    """Whether, if it succeeded, the target can serve no client any more."""


@dataclass(frozen=True, slots=True)
class FencingReport:
    """All tries, in order.  The last one succeeded, or the target is not fenced."""

    target: Target
    attempts: tuple[Attempt, ...]
    duration_seconds: float

    @property
    def fenced(self) -> bool:
        """Whether some method says that the target is harmless now."""
        return any(attempt.outcome is FencingOutcome.SUCCEEDED for attempt in self.attempts)

    @property
    def proven_gone(self) -> bool:
        """Whether the target can serve no client any more, not even a read."""
        return any(
            attempt.outcome is FencingOutcome.SUCCEEDED and attempt.proves_gone
            for attempt in self.attempts
        )

    def __str__(self) -> str:
        """Return the whole story in one line."""
        if not self.attempts:
            return f"{self.target} was not fenced: no fencing method is configured"
        verdict = "was fenced" if self.fenced else "could not be fenced"
        tries = "; ".join(f"{a.method} {a.outcome}: {a.detail}" for a in self.attempts)
        return f"{self.target} {verdict} in {self.duration_seconds:.1f} s ({tries})"
