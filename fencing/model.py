"""Fencing's words: whom to fence, by which methods, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Target:
    """The NameNode to make harmless: its ids and the host and port of its (service) RPC."""

    nameservice: str
    namenode: str
    host: str
    port: int

    def __str__(self) -> str:
        """The form used in logs and messages."""
        return f"{self.nameservice}.{self.namenode} at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ShellMethod:
    """``shell(command)``: run a command on this machine; exit status 0 means fenced."""

    command: str

    def __str__(self) -> str:
        """As configured."""
        return f"shell({self.command})"


@dataclass(frozen=True, slots=True)
class SshMethod:
    """``sshfence`` or ``sshfence([user][:port])``: kill the NameNode over ssh."""

    user: str | None
    port: int

    def __str__(self) -> str:
        """As configured, the port always written out."""
        return f"sshfence({self.user or ''}:{self.port})"


MethodSpec = ShellMethod | SshMethod


class Outcome(StrEnum):
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
    outcome: Outcome
    detail: str
    duration_seconds: float
    output: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All tries, in order.  The last one succeeded, or the target is not fenced."""

    target: Target
    attempts: tuple[Attempt, ...]
    duration_seconds: float

    @property
    def fenced(self) -> bool:
        """Whether some method says that the target is harmless now."""
        return any(attempt.outcome is Outcome.SUCCEEDED for attempt in self.attempts)

    def __str__(self) -> str:
        """One line that tells the whole story."""
        if not self.attempts:
            return f"{self.target} was not fenced: no fencing method is configured"
        verdict = "was fenced" if self.fenced else "could not be fenced"
        tries = "; ".join(f"{a.method} {a.outcome}: {a.detail}" for a in self.attempts)
        return f"{self.target} {verdict} in {self.duration_seconds:.1f} s ({tries})"
