"""The options of every daemon about its log."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from ha.daemon.logs import FORMS, LEVELS, LogOptions

F = TypeVar("F", bound=Callable[..., Any])


def log_options(command: F) -> F:
    """Add --log-level and --log-format of a daemon: the command gets ``log_as``."""

    @click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="The least severe lines that are written.",
    )
    @click.option(
        "--log-format",
        type=click.Choice(FORMS),
        default=None,
        help="One JSON object a line, or text; JSON unless a person is looking.",
    )
    @wraps(command)
    def wrapper(
        *arguments: Any,  # noqa: ANN401 - click's own shape
        log_level: str,
        log_format: str | None,
        **own: Any,  # noqa: ANN401 - the command's own options
    ) -> object:
        return command(*arguments, log_as=LogOptions(log_level, log_format), **own)

    return cast("F", wrapper)
