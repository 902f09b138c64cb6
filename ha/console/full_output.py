"""What a standard output that takes nothing does to a command: one line on stderr."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

_UNWRITTEN: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


@contextmanager
def report_unwritten_output() -> Iterator[None]:
    """Turn a failure to write standard output (a full disk) into one line and exit code 1.

    Other failures pass, and so does BrokenPipeError, which click takes.
    """
    try:
        yield
    except OSError as failure:
        if failure.errno not in _UNWRITTEN or not _takes_nothing():
            raise
        # Else Python tries once more at its end, and that would be the exit code.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the rest of the process
        reason = failure.strerror or str(failure)
        raise click.ClickException(
            f"the result cannot be written to standard output: {reason}"
        ) from failure


def _takes_nothing() -> bool:
    """Try it: an unbuffered output does not keep what it could not pass on."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return True
    return False
