"""The options that every command about a cluster takes, and what they lead to."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from rich.text import Text

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import nameservice_of
from ha.console.exit_codes import OUTCOME_UNKNOWN, USAGE
from ha.console.options import configuration as configuration_options
from ha.console.options import timeout_option
from ha.console.output import FORMATS, NotWritten, plain, show
from ha.console.own_certificate import PEOPLE, call_under_certificate
from ha.console.result import Code, CommandOutcome, Ended, Ending
from ha.record import dataclass
from ha.security.caller import Role

AUDITED: Final = frozenset(
    {"pause", "resume", "drain", "switchover", "failover"}
    | {"decommission", "maintenance", "recommission"}
    | {"safemode enter", "safemode leave", "safemode forceExit"}
)
"""Commands that change something; where a daemon does it, it writes a line of its own."""


@dataclass(frozen=True, slots=True)
class ClusterCommand:
    """Which cluster is meant, and in which form the result is wanted."""

    configuration: Configuration
    nameservice: str
    output: str
    timeout_seconds: float = 0.0
    """How long a process may take to answer a question; 0 for a command that asks none."""

    def end(self, ending: Ending) -> NoReturn:
        """Show how it ended, write it into the audit log, and exit with its code."""
        if ending.command in AUDITED and ending.outcome is not CommandOutcome.PLANNED:
            self.audit(ending.command, ending.outcome.exit_code, ending.target, ending.message)
        text = Text("\n".join(plain(line) for line in ending.as_lines()))
        try:
            show(self.output, ending.as_json(), text)
        except NotWritten as failure:
            # The command is done: the code must report its result, not a full disk.
            click.echo(f"nnha: {failure.message}. It is:\n{text.plain}", err=True)
        sys.exit(ending.outcome.exit_code)

    def audit(self, command: str, code: int, target: str | None, reason: str) -> None:
        """Write down that a command which changes something has ended with that exit code."""
        # Loaded here: most commands only ask.
        from ha.console.command_audit import CommandAudit, outcome_of

        where = f"{self.nameservice}.{target}" if target else self.nameservice
        CommandAudit.configured(self.configuration).write(command, outcome_of(code), where, reason)


def about_a_cluster(
    command: str,
    *,
    timeout_seconds: float | None,
    formats: tuple[str, ...] = FORMATS,
    roles: tuple[Role, ...] = PEOPLE,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --conf-dir, -D, -ns, -o and --timeout; the function gets them as ``place``.

    ``timeout_seconds`` is the default of --timeout: how long a process may take to answer; None for
    a command that asks no process. It calls under the certificate of the first of ``roles`` that
    this user can read. Libraries log nothing: the command reports their errors in its own words.
    A configuration that cannot be used ends the command with exit
    code 2, shown in the format that -o asks for.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @configuration_options
        @click.option("-ns", "--nameservice", default=None, help="Which nameservice, if several.")
        @click.option("-o", "--output", type=click.Choice(formats), default=formats[0])
        @_asking(timeout_seconds)
        @wraps(function)
        def wrapper(
            *,
            conf_dir: Path | None,
            overrides: tuple[str, ...],
            nameservice: str | None,
            output: str,
            timeout_seconds: float = 0.0,
            **own: Any,  # noqa: ANN401 - the command's own options, of click's making
        ) -> None:
            try:
                configuration = load_configuration(conf_dir, overrides)
                call_under_certificate(configuration, *roles)
                name = nameservice or nameservice_of(configuration)
                for warning in configuration.warnings:
                    click.echo(f"warning: {warning}", err=True)
                place = ClusterCommand(configuration, name, output, timeout_seconds)
                if "structlog" in sys.modules:  # a command that logs nothing has not loaded it
                    from ha.console.library_logs import silence_libraries

                    silence_libraries()
                try:
                    function(place=place, **own)
                except Ended as end:
                    place.end(end.ending)
                except BaseException as failure:
                    if command in AUDITED and not isinstance(
                        failure, SystemExit | click.UsageError
                    ):
                        why = str(failure) or type(failure).__name__
                        place.audit(command, OUTCOME_UNKNOWN, None, why)
                    raise
            except ConfigurationError as error:
                _misconfigured(command, output, error)

        return wrapper

    return decorate


def _asking(
    default_seconds: float | None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --timeout where the command asks somebody."""
    return (lambda command: command) if default_seconds is None else timeout_option(default_seconds)


def _misconfigured(command: str, output: str, error: ConfigurationError) -> NoReturn:
    if output in ("json", "yaml"):
        ending = Ending(
            command,
            CommandOutcome.REFUSED,
            Code.BAD_CONFIGURATION,
            str(error),
            hint="nnha config validate",
        )
        show(output, {**ending.as_json(), "exit_code": USAGE}, "")
    else:
        click.echo(f"nnha {command}: {error}", err=True)
    sys.exit(USAGE)
