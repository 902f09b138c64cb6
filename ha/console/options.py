"""The options that every command with a configuration takes."""

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ha.conf.secrets import bare_secret

F = TypeVar("F", bound=Callable[..., Any])


def in_the_process_list(name: str) -> str:
    """Return why a secret must not stand on a command line, and where it may."""
    return (
        f"-D {name}=...: everybody on this machine can read it in the list of processes. Set it in "
        "the configuration files; ha.zookeeper.auth takes @/path/of/file"
    )


def _without_secrets(
    _ctx: click.Context, _param: click.Parameter, overrides: tuple[str, ...]
) -> tuple[str, ...]:
    for name in filter(None, map(bare_secret, overrides)):
        raise click.UsageError(in_the_process_list(name))
    return overrides


def configuration(command: F) -> F:
    """Add --conf-dir and -D: the command gets ``conf_dir`` and ``overrides``.

    Hadoop spells the first -conf-dir in its commands and --config in its scripts.
    """
    command = click.option(
        "-D",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a key.",
        callback=_without_secrets,
    )(command)
    return click.option(
        "--conf-dir",
        "-conf-dir",
        "--config",
        type=click.Path(path_type=Path),
        help="Folder with core-site.xml and hdfs-site.xml; $HADOOP_CONF_DIR if not given.",
    )(command)


class Seconds(click.FloatRange):
    """Seconds within limits: not a number is neither above nor below any, so click lets it pass."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own shape
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Read a number that can be compared."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return found


def timeout_option(default_seconds: float) -> Callable[[F], F]:
    """Add --timeout: the command gets ``timeout_seconds``."""
    return click.option(
        "--timeout",
        "timeout_seconds",
        type=Seconds(min=0.1, max=3600.0),
        default=default_seconds,
        show_default=True,
        metavar="SECONDS",
        help="How long a process may take to answer.",
    )


def confirmed(question: str) -> bool:
    """Ask until the answer is yes or no; the end of input is a no, where Hadoop asks for ever."""
    return ask_letter(question, {"y": "yes", "n": "no"}, at_end="n") == "y"


def ask_letter(question: str, choices: Mapping[str, str], *, at_end: str) -> str:
    """Ask until the answer is one of these letters, or what it stands for.

    ``at_end`` is the answer where the input has ended.
    """
    while True:
        click.echo(question, err=True)
        line = sys.stdin.readline()
        word = line.strip().lower()
        for letter, meaning in choices.items():
            if word and word in (letter, meaning):
                return letter
        if not line:
            return at_end
        click.echo(f"Please answer {' or '.join(letter.upper() for letter in choices)}.", err=True)
