"""``nnha haadmin``: Hadoop's haadmin with its option spellings, its lines and its exit codes."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from ha.cli import haadmin_actions as actions
from ha.cli.exits import DONE, HADOOP_FAILURE
from ha.cli.haadmin_actions import Asked
from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.service.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Command:
    """One haadmin command: its arguments as Hadoop's usage shows them, and its help text."""

    arguments: str
    text: str
    action: actions.Action
    count: int
    flags: frozenset[str] = field(default_factory=frozenset)

    @property
    def usage(self) -> str:
        """The arguments with the blank in front of them, or nothing."""
        return f" {self.arguments}" if self.arguments else ""


_FORCE = "forcemanual"
"""As in Hadoop not shown in the usage: it is for those who have read the warning."""

COMMANDS: Mapping[str, Command] = {
    "checkHealth": Command(
        "<serviceId>",
        "Ask the service whether it is well; exits with an error if it is not",
        actions.check_health,
        1,
    ),
    "failover": Command(
        "[--forcefence] [--forceactive] <serviceId> <serviceId>",
        "Failover from the first service to the second",
        actions.failover,
        2,
        frozenset({"forcefence", "forceactive", _FORCE}),
    ),
    "getAllServiceState": Command(
        "", "Returns the state of all the services", actions.all_service_states, 0
    ),
    "getServiceState": Command(
        "<serviceId>", "Returns the state of the service", actions.service_state, 1
    ),
    "transitionToActive": Command(
        "[--forceactive] <serviceId>",
        "Transitions the service into Active state",
        actions.to_active,
        1,
        frozenset({"forceactive", _FORCE}),
    ),
    "transitionToObserver": Command(
        "<serviceId>",
        "Transitions the service into Observer state",
        actions.to_observer,
        1,
        frozenset({_FORCE}),
    ),
    "transitionToStandby": Command(
        "<serviceId>",
        "Transitions the service into Standby state",
        actions.to_standby,
        1,
        frozenset({_FORCE}),
    ),
}


class Misused(Exception):
    """The command line is wrong; the message is what haadmin prints before its usage."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass(slots=True)
class Invocation:
    """The command line, taken apart."""

    conf_dir: Path | None = None
    overrides: list[str] = field(default_factory=list)
    nameservice: str | None = None
    words: list[str] = field(default_factory=list)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def haadmin(words: tuple[str, ...]) -> None:
    """Hadoop's haadmin: states, health, failover.  Exits 0, or 255 (Hadoop's -1).

    A failover whose outcome nobody knows exits 5, which Hadoop does not tell apart.
    """
    sys.exit(run(words))


def run(words: tuple[str, ...]) -> int:
    """Carry out one haadmin command line and return its exit code."""
    try:
        invocation = take_apart(words)
        if invocation.words[0].lstrip("-") == "help":
            return _help(invocation.words[1:])
        name, asked_flags, arguments = _command(invocation.words)
        configuration = load_configuration(invocation.conf_dir, invocation.overrides)
        for warning in configuration.warnings:
            _complain(f"warning: {warning}")
        asked = Asked(configuration, invocation.nameservice, tuple(arguments), asked_flags)
        return asyncio.run(COMMANDS[name].action(asked))
    except Misused as error:
        _complain(str(error))
        _complain(error.usage)
    except (ConfigurationError, actions.IllegalArgument) as error:
        _complain(f"Illegal argument: {error}")
    except ServiceError as error:
        _complain(f"Operation failed: {error}")
    return HADOOP_FAILURE


def take_apart(words: tuple[str, ...]) -> Invocation:
    """Separate generic options and ``-ns`` from the command.  Raises ``Misused``."""
    found = Invocation()
    rest = list(words)
    while rest:
        word = rest[0]
        if word in ("--conf-dir", "-conf-dir", "--config") and len(rest) > 1:
            found.conf_dir = Path(rest[1])
            del rest[:2]
        elif word == "-D" and len(rest) > 1:
            found.overrides.append(rest[1])
            del rest[:2]
        elif word.startswith("-D") and "=" in word:
            found.overrides.append(word.removeprefix("-D"))
            del rest[:1]
        else:
            break
    if rest and rest[0] == "-ns":
        if len(rest) < 2:
            raise Misused("Missing nameservice ID", usage())
        found.nameservice = rest[1]
        del rest[:2]
        if not rest:
            raise Misused("Missing command", usage())
    if not rest:
        raise Misused("", usage())
    found.words = rest
    return found


def usage() -> str:
    """The whole usage, as Hadoop lays it out."""
    lines = [
        "Usage: haadmin [-ns <nameserviceId>]",
        *(f"    [-{name}{command.usage}]" for name, command in COMMANDS.items()),
        "    [-help <command>]",
        "",
        "Before -ns: [--conf-dir DIR] [-D key=value]...",
    ]
    return "\n".join(lines)


def _command(words: list[str]) -> tuple[str, frozenset[str], list[str]]:
    first = words[0]
    if not first.startswith("-"):
        raise Misused(f"Bad command '{first}': expected command starting with '-'", usage())
    name = first.removeprefix("-").removeprefix("-")
    command = COMMANDS.get(name)
    if command is None:
        raise Misused(f"{first.removeprefix('-')}: Unknown command", usage())
    one_line = f"Usage: haadmin [-{name}{command.usage}]"
    flags = {word.lstrip("-") for word in words[1:] if word.startswith("-")}
    arguments = [word for word in words[1:] if not word.startswith("-")]
    if not flags <= command.flags:
        raise Misused(f"{name}: incorrect arguments", one_line)
    if len(arguments) != command.count and command.count:
        # Hadoop's -getAllServiceState passes over what it does not need.
        what = "arguments" if name == "failover" else "number of arguments"
        raise Misused(f"{name}: incorrect {what}", one_line)
    return name, frozenset(flags), arguments


def _help(words: list[str]) -> int:
    if not words:
        click.echo(usage())
        return DONE
    name = words[0].lstrip("-")
    command = COMMANDS.get(name)
    if command is None or len(words) > 1:
        raise Misused(f"{name}: Unknown command", usage())
    click.echo(f"-{name}{' ' + command.arguments if command.arguments else ''}: {command.text}")
    return DONE


def _complain(message: str) -> None:
    if message:
        click.echo(message, err=True)
