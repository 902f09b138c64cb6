"""``haadmin``: Hadoop's own tool with its option spellings, its lines and its exit codes.

What it prints on stdout is byte for byte what Hadoop 3.5's prints (tests/interop compares them).
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from ha.cli.hadoop import actions
from ha.cli.hadoop.actions import Asked
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.cluster import CLI_CHECK_TIMEOUT
from ha.conf.reader import read_settings
from ha.conf.secrets import bare_secret
from ha.console.exit_codes import DONE, HADOOP_FAILURE
from ha.console.interrupt import interruptible
from ha.console.options import in_the_process_list
from ha.console.own_certificate import call_under_certificate
from ha.daemon import event_loop
from ha.record import dataclass, field
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
        "Requests that the service perform a health check.\n"
        "The HAAdmin tool will exit with a non-zero exit code\nif the check fails.",
        actions.check_health,
        1,
    ),
    "failover": Command(
        "[--forcefence] [--forceactive] <serviceId> <serviceId>",
        "Failover from the first service to the second.\n"
        "Unconditionally fence services if the --forcefence option is used.\n"
        "Try to failover to the target service even if it is not ready if the "
        "--forceactive option is used.",
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

_HELP_ARGUMENTS = "<command>"
_HELP_TEXT = "Displays help on the specified command"
_HEADER = "Usage: haadmin [-ns <nameserviceId>]"
MOST_TIMEOUT_SECONDS = 3600.0
MOST_OPTIONS = 3
"""More than these and a -failover is wrong, even if all are known."""

_IGNORED = ("-jt", "-files", "-libjars", "-archives")
"""Generic options that haadmin itself makes no use of, in Hadoop either; each has a value."""

_GENERIC = """\
Generic options supported are:
-conf <configuration file>        specify an application configuration file
-D <property=value>               define a value for a given property
-fs <file:///|hdfs://namenode:port> specify default filesystem URL to use, \
overrides 'fs.defaultFS' property from configurations.
-jt <local|resourcemanager:port>  specify a ResourceManager
-files <file1,...>                specify a comma-separated list of files \
to be copied to the map reduce cluster
-libjars <jar1,...>               specify a comma-separated list of jar files \
to be included in the classpath
-archives <archive1,...>          specify a comma-separated list of archives \
to be unarchived on the compute machines

The general command line syntax is:
command [genericOptions] [commandOptions]
"""
"""As Hadoop prints it.

In addition, --conf-dir names the folder of the site files, and --timeout SECONDS says how long a
NameNode may take to answer a check (Hadoop has a configuration key for it).
"""


class Misused(Exception):
    """The command line is wrong; the message is what haadmin prints before its usage."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass(slots=True)
class Invocation:
    """The command line, taken apart."""

    conf_dir: Path | None = None
    extra_files: list[Path] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)
    nameservice: str | None = None
    words: list[str] = field(default_factory=list)

    def configuration(self) -> Configuration:
        """Load the site files, then those of -conf, then -D; raise ConfigurationError."""
        extra = [
            f"{setting.name}={setting.value}"
            for path in self.extra_files
            for setting in read_settings(path)
        ]
        configuration = load_configuration(self.conf_dir, [*extra, *self.overrides])
        call_under_certificate(configuration)
        return configuration


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def haadmin(words: tuple[str, ...]) -> None:
    """Run Hadoop's haadmin: states, health, failover.  Exits 0, or 255 (Hadoop's -1).

    A failover or transition whose outcome is unknown exits 5, for which Hadoop has no code of its
    own.
    """
    with interruptible():
        sys.exit(run(words))


def run(words: tuple[str, ...]) -> int:
    """Carry out one haadmin command line and return its exit code."""
    try:
        invocation = parse_words(words)
        if invocation.words[0].lstrip("-") == "help":
            return _help(invocation.words[1:])
        name, asked_flags, arguments = _command(invocation.words)
        configuration = invocation.configuration()
        for warning in configuration.warnings:
            _complain(f"warning: {warning}")
        asked = Asked(configuration, invocation.nameservice, tuple(arguments), asked_flags)
        return event_loop.run(COMMANDS[name].action(asked))
    except Misused as error:
        _complain(str(error))
        _complain(error.usage)
    except (ConfigurationError, actions.IllegalArgument) as error:
        _complain(f"Illegal argument: {error}")
    except ServiceError as error:
        _complain(f"Operation failed: {error}")
    return HADOOP_FAILURE


def parse_words(words: tuple[str, ...]) -> Invocation:
    """Separate generic options and ``-ns`` from the command.  Raises ``Misused``."""
    found = Invocation()
    rest = list(words)
    while rest and (taken := _generic_option(found, rest)):
        del rest[:taken]
    for name in filter(None, map(bare_secret, found.overrides)):
        raise Misused(in_the_process_list(name), "")
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


def _generic_option(found: Invocation, rest: list[str]) -> int:
    """Take one generic option; how many words it was, 0 when there is none."""
    word = rest[0]
    if word.startswith("-D") and "=" in word:
        found.overrides.append(word.removeprefix("-D"))
        return 1
    if len(rest) < 2:
        return 0
    value = rest[1]
    match word:
        case "--conf-dir" | "-conf-dir" | "--config":
            found.conf_dir = Path(value)
        case "-conf" | "--conf":
            found.extra_files.append(Path(value))
        case "-D":
            found.overrides.append(value)
        case "-fs" | "--fs":
            found.overrides.append(f"fs.defaultFS={value}")
        case "--timeout":
            found.overrides.append(f"{CLI_CHECK_TIMEOUT.name}={_milliseconds(value)}")
        case _ if word in _IGNORED:
            pass
        case _:
            return 0
    return 2


def _milliseconds(seconds: str) -> int:
    try:
        found = float(seconds)
    except ValueError:
        found = 0.0
    if not 0 < found <= MOST_TIMEOUT_SECONDS:
        raise Misused(f"--timeout takes seconds, as 10, and not {seconds!r}", usage())
    return max(1, round(found * 1000))


def usage() -> str:
    """Return the whole usage, as Hadoop lays it out: its lines are sorted by the command's name."""
    arguments = {name: command.usage for name, command in COMMANDS.items()}
    arguments["help"] = f" {_HELP_ARGUMENTS}"
    lines = [f"    [-{name}{arguments[name]}]" for name in sorted(arguments)]
    return "\n".join([_HEADER, *lines, "", _GENERIC])


def _one_line(name: str, arguments: str) -> str:
    return f"{_HEADER} [-{name}{arguments}]"


def _command(words: list[str]) -> tuple[str, frozenset[str], list[str]]:
    first = words[0]
    if not first.startswith("-"):
        raise Misused(f"Bad command '{first}': expected command starting with '-'", usage())
    name = first.removeprefix("-").removeprefix("-")
    command = COMMANDS.get(name)
    if command is None:
        raise Misused(f"{first.removeprefix('-')}: Unknown command", usage())
    one_line = _one_line(name, command.usage)
    options = [word.lstrip("-") for word in words[1:] if word.startswith("-")]
    arguments = [word for word in words[1:] if not word.startswith("-")]
    if not command.flags.issuperset(options) or len(options) > MOST_OPTIONS:
        raise Misused(f"{name}: incorrect arguments", one_line)
    if len(arguments) != command.count and command.count:
        # Hadoop's -getAllServiceState passes over what it does not need.
        what = "arguments" if name == "failover" else "number of arguments"
        raise Misused(f"{name}: incorrect {what}", one_line)
    return name, frozenset(options), arguments


def _help(words: list[str]) -> int:
    if not words:
        click.echo(usage())
        return DONE
    if len(words) > 1:
        raise Misused("", _one_line("help", f" {_HELP_ARGUMENTS}"))
    name = words[0].removeprefix("-")
    command = COMMANDS.get(name)
    if command is None and name != "help":
        raise Misused(f"-{name}: Unknown command", usage())
    arguments = command.arguments if command else _HELP_ARGUMENTS
    shown = f" [{arguments}]" if arguments else ""
    click.echo(f"-{name}{shown}: {command.text if command else _HELP_TEXT}")
    return DONE


def _complain(message: str) -> None:
    if message:
        click.echo(message, err=True)
