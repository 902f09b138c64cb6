"""What Tab offers for a path in HDFS: one listing, asked of the active with a short limit."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from files.cli.spelling import Unfit, child, quoted, unquoted
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

LIMITS: Final = CallLimits(connect_seconds=0.5, attempt_seconds=0.5, total_seconds=0.5)
Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def remote_paths(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the paths that begin so, directories with a slash; none where that is not known."""
    with suppress(ConfigurationError, FilesError, Unfit, OSError):
        given = ctx.params.get
        configuration = load_configuration(given("conf_dir"), given("overrides") or ())
        call_under_certificate(configuration, Role.CLIENT, Role.ADMIN)
        name = given("nameservice") or nameservice_of(configuration)
        namenodes = Namenodes.of(configuration, nameservice=name, user=own_user(), limits=LIMITS)
        paths = event_loop.run(_beginning(Tree(namenodes, own_user(), name), incomplete))
        return [CompletionItem(path) for path in paths]
    return []


async def _beginning(tree: Tree, text: str) -> list[str]:
    above, slash, begun = text.rpartition("/")
    shown, begun = above + slash or ".", unquoted(begun)
    first = begun.encode()
    # What comes just before all names that begin so: no name has the byte 0xff.
    before = first[:-1] + bytes([first[-1] - 1]) + b"\xff" if first else b""
    async with tree.namenodes:
        found, _ = await tree.page(tree.only(shown), "", before)
    return [
        child(shown, quoted(name)) + "/" * one.is_directory
        for one in found
        if (name := one.path.rpartition("/")[2]).startswith(begun)
    ]


def first_word(first: Complete | None, others: Complete | None) -> Complete:
    """Return a completion of paths in HDFS or, for None, of files by the shell itself."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        wanted = others if ctx.params.get(param.name or "") else first
        return wanted(ctx, param, incomplete) if wanted else [CompletionItem("", type="file")]

    return complete
