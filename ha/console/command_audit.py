"""What a person does by a command, in the audit log: daemons do not see all of it.

Pauses and drains are written into ZooKeeper, certificates and repairs into files.
"""

import os
import pwd
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import click

from ha.conf.configuration import Configuration
from ha.conf.keys.security import AUDIT_FILE, AUDIT_FORMAT, AuditFormat
from ha.console import exit_codes
from ha.record import dataclass
from ha.security.audit_lines import append, lines_of
from ha.security.audit_text import Entry, Outcome
from ha.security.caller import local_caller

PROTO: Final = "command"
_REFUSED: Final = frozenset({exit_codes.REFUSED, exit_codes.UNAUTHORISED})


@dataclass(frozen=True, slots=True)
class CommandAudit:
    """Where the commands of this process write what they did; nowhere without a ``path``."""

    path: Path | None
    form: AuditFormat = AuditFormat.JSON

    @classmethod
    def configured(cls, configuration: Configuration) -> "CommandAudit":
        """Return the audit log as daemons of that configuration have it; a command has no log."""
        path = configuration.get(AUDIT_FILE)
        return cls(Path(path) if path else None, configuration.get(AUDIT_FORMAT))

    def write(self, command: str, outcome: Outcome, target: str, reason: str = "") -> None:
        """Write an entry; where that fails the user is warned, and what was done stands."""
        if self.path is None:
            return
        uid = os.getuid()
        name = str(uid)
        with suppress(KeyError):
            name = pwd.getpwuid(uid).pw_name
        behind = os.environ.get("SUDO_USER", "")
        entry = Entry(
            outcome,
            local_caller(uid, uid, f"{socket.gethostname()}:0").named(name),
            PROTO,
            "nnha",
            command,
            target,
            reason,
            context=f"sudo by {behind}" if behind else "",
        )
        try:
            append(self.path, list(lines_of(self.form, entry)))
        except OSError as failure:
            click.echo(f"warning: the audit log was not written: {failure}", err=True)

    @contextmanager
    def telling(self, command: str, target: str) -> Iterator[None]:
        """Write down how the work inside ends, whatever ends it.

        An exit code says whether it was refused or failed; after an exception the outcome is
        unknown.
        """
        try:
            yield
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else exit_codes.UNEXPECTED
            self.write(command, outcome_of(code), target)
            raise
        except BaseException as failure:
            self.write(command, Outcome.UNKNOWN, target, str(failure) or type(failure).__name__)
            raise
        self.write(command, Outcome.DONE, target)


def outcome_of(code: int) -> Outcome:
    """Return the outcome that an exit code of ours stands for."""
    if code == exit_codes.DONE:
        return Outcome.DONE
    if code in _REFUSED:
        return Outcome.REFUSED
    return Outcome.UNKNOWN if code == exit_codes.OUTCOME_UNKNOWN else Outcome.FAILED
