"""One result in the form that was asked for: text for people, JSON or YAML for programs."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Final

import click
from rich.console import Console, RenderableType
from rich.text import Text

from ha.console.yaml_text import as_yaml

FORMATS: Final = ("table", "json", "yaml")
WIDE_ENOUGH: Final = 160
"""Columns without a terminal: a line in a file must not be broken."""


class NotWritten(click.ClickException):
    """Standard output takes nothing (a full disk, a closed descriptor); the text says why."""


def console() -> Console:
    """Return standard output, as wide as the terminal; colours only there, not with NO_COLOR."""
    found = Console(highlight=False, soft_wrap=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDE_ENOUGH)


def show(output: str, document: Mapping[str, object], text: RenderableType) -> None:
    """Write the result, at once: a process that ends after it must not hold it back.

    Raises NotWritten; but where the reader has hung up, BrokenPipeError, which click takes.
    """
    if sys.stdout is None:
        raise NotWritten("the result cannot be written to standard output: it is closed")
    try:
        match output:
            case "json":
                click.echo(json.dumps(document, indent=2))
            case "yaml":
                click.echo(as_yaml(document), nl=False)
            case _:
                # Plain lines are not broken by us: a terminal does that, a file must not have it.
                console().print(text, soft_wrap=isinstance(text, Text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as failure:
        # Else Python tries once more at its end, and that would be the exit code.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the rest of the process
        reason = failure.strerror or str(failure)
        raise NotWritten(f"the result cannot be written to standard output: {reason}") from failure


def plain(text: str, keep: str = "") -> str:
    """Replace control characters: what a peer says must not steer the terminal."""
    return "".join(c if c.isprintable() or c in keep else "?" for c in text)
