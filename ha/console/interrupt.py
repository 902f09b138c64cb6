"""What Ctrl-C does to a command: one line on stderr, and exit code 130."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from ha.console.exit_codes import INTERRUPTED


@contextmanager
def interruptible() -> Iterator[None]:
    """End the process with one line where a person interrupts what runs inside."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        click.echo("\ninterrupted", err=True)
        sys.exit(INTERRUPTED)
