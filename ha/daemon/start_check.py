"""What every daemon looks at before it starts: settings that it must not, or does not, follow."""

import structlog

from ha.conf.configuration import Configuration
from ha.conf.hazards import Daemon, refuse_dangers
from ha.conf.ignored import find_ignored

log = structlog.get_logger()


def check_start(configuration: Configuration, daemon: Daemon) -> None:
    """Refuse settings that are unsafe to ignore, and log what is doubtful or ignored, once.

    Raises ``ConfigurationError``.
    """
    for warning in configuration.warnings:
        log.warning("configuration.warning", text=warning)
    refuse_dangers(configuration, daemon)
    names = [one.name for one in find_ignored(configuration)]
    if names:
        log.info(
            "configuration.ignored",
            daemon=daemon.value,
            count=len(names),
            keys=names,
            why="nnha config explain KEY",
        )
