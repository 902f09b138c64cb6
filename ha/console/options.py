"""The options that every command with a configuration takes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def configuration(command: F) -> F:
    """Add --conf-dir and -D: the command gets ``conf_dir`` and ``overrides``.

    Hadoop spells the first -conf-dir in its commands and --config in its scripts.
    """
    command = click.option(
        "-D", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key."
    )(command)
    return click.option(
        "--conf-dir",
        "-conf-dir",
        "--config",
        type=click.Path(path_type=Path),
        help="Folder with core-site.xml and hdfs-site.xml; $HADOOP_CONF_DIR if not given.",
    )(command)
