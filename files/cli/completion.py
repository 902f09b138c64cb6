"""What Tab offers for a path in HDFS: one listing, asked of the active with a short limit."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from files.cli.globs import quoted, unquoted
from files.cli.spelling import BadPath, child, name_of
from files.cli.tree import Tree
from files.errors import FilesError
from files.namenodes import CallLimits, Namenodes
from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.own_user import own_user
from ha.conf.topology import nameservice_of
from ha.console.own_certificate import call_under_certificate
from ha.daemon import event_loop
from ha.security.caller import Role

SECONDS: Final = 0.5
LIMITS: Final = CallLimits(connect_seconds=SECONDS, attempt_seconds=SECONDS, total_seconds=SECONDS)


def remote_paths(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the paths that begin so, directories with a slash; none where that is not known."""
    with suppress(ConfigurationError, FilesError, BadPath, OSError):
        folder = ctx.params.get("conf_dir")
        configuration = load_configuration(
            folder if isinstance(folder, Path) else None, ctx.params.get("overrides") or ()
        )
        call_under_certificate(configuration, Role.CLIENT, Role.ADMIN)
        name = ctx.params.get("nameservice") or nameservice_of(configuration)
        namenodes = Namenodes.of(configuration, nameservice=name, user=own_user(), limits=LIMITS)
        tree = Tree(namenodes, own_user(), name)
        return [CompletionItem(path) for path in event_loop.run(_beginning(tree, incomplete))]
    return []


async def _beginning(tree: Tree, text: str) -> Sequence[str]:
    async with tree.namenodes:
        above, slash, begun = text.rpartition("/")
        shown = above + slash or "."
        spelling = tree.spelt(shown)
        path, begun = unquoted(spelling.absolute(spelling.path)), unquoted(begun)
        page = await tree.page(path, shown, _before(begun))
        return [
            child(shown, quoted(name_of(one.path))) + "/" * one.is_directory
            for one in page.entries
            if name_of(one.path).startswith(begun)
        ]


def remote_first(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return paths in HDFS for the first word, and have the shell offer files for the others."""
    if ctx.params.get(param.name or ""):
        return [CompletionItem(incomplete, type="file")]
    return remote_paths(ctx, param, incomplete)


def local_first(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Have the shell offer files for the first word, and return paths in HDFS for the others."""
    if ctx.params.get(param.name or ""):
        return remote_paths(ctx, param, incomplete)
    return [CompletionItem(incomplete, type="file")]


def _before(begun: str) -> bytes:
    """Return what comes just before all names that begin so, in the order of their bytes."""
    name = begun.encode()
    return name[:-1] + bytes([name[-1] - 1]) + b"\xff" if name else b""
