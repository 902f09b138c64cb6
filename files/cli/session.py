"""What every ``nnha fs`` command shares: options, the connection, results, failures, the end."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, NoReturn

import click

from files.cli.failures import KNOWN, Failure, exit_code, failure_of
from files.cli.forms import Entry
from files.cli.tree import Tree
from files.errors import OutcomeUnknown, Unreachable
from files.namenodes import DEFAULT_LIMITS, CallLimits, Namenodes
from ha.conf.own_user import own_user
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.output import FORMATS, plain, show
from ha.console.result import API_VERSION
from ha.daemon import event_loop
from ha.security.caller import Role


class _NoAnswer(Exception):
    """The command ends: what it needs does not answer, and that is reported."""


@dataclass(slots=True)
class Session:
    """One command under way: whom it asks, what it has found and done, and what failed."""

    command: str
    place: ClusterCommand
    tree: Tree
    changes: bool
    results: list[Mapping[str, object]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def for_people(self) -> bool:
        """Whether lines are printed, and not one document at the end."""
        return self.place.output == "table"

    def say(self, text: str) -> None:
        """Print one line for people; on a terminal no name can steer it."""
        if self.for_people:
            click.echo(plain(text, " ") if sys.stdout.isatty() else text)

    def result(self, document: Mapping[str, object], text: str | None = None) -> None:
        """Note one thing that was found or done; print its line where lines are printed."""
        if not self.for_people or self.changes:
            self.results.append(document)
        if text is not None:
            self.say(text)

    @contextmanager
    def trying(self, path: str) -> Iterator[None]:
        """Report an error about one path, and go on.

        Raises:
            _NoAnswer: no NameNode is active; each further path would wait as long.
        """
        try:
            yield
        except KNOWN as error:
            failure = failure_of(path, error, self.tree.user)
            self.failures.append(failure)
            if self.for_people:
                sys.stdout.flush()
                click.echo(f"nnha {self.command}: {plain(str(failure), chr(10))}", err=True)
            if isinstance(error, Unreachable | OutcomeUnknown):
                raise _NoAnswer from error

    async def named(self, paths: Sequence[str]) -> Sequence[Entry]:
        """Return what the paths and patterns of the command line stand for."""
        found: list[Entry] = []
        for path in paths:
            with self.trying(path):
                found += await self.tree.expanded(path)
        return found

    def end(self) -> NoReturn:
        """Print the document, if one is wanted, and exit with the code for all that happened."""
        code = exit_code(self.failures, changed=self.changes and bool(self.results))
        if not self.for_people:
            document = {
                "apiVersion": API_VERSION,
                "command": self.command,
                "nameservice": self.place.nameservice,
                "exit_code": code,
                "results": self.results,
                "failures": [one.as_json() for one in self.failures],
            }
            show(self.place.output, document, "")
        sys.exit(code)


def about_files(
    command: str, *, changes: bool, formats: tuple[str, ...] = FORMATS
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Add the options of every command about files; its coroutine gets a ``Session``.

    ``changes``: a failure after some change is FAILED, and not REFUSED.
    """

    def decorate(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        name = f"fs {command}"

        @about_a_cluster(
            name,
            timeout_seconds=DEFAULT_LIMITS.total_seconds,
            formats=formats,
            roles=(Role.CLIENT, Role.ADMIN),
        )
        @wraps(work)
        def wrapper(
            *,
            place: ClusterCommand,
            **own: Any,  # noqa: ANN401 - the command's own options, of click's making
        ) -> None:
            event_loop.run(_run(name, place, partial(work, **own), changes=changes)).end()

        return wrapper

    return decorate


async def _run(
    command: str,
    place: ClusterCommand,
    work: Callable[[Session], Awaitable[None]],
    *,
    changes: bool,
) -> Session:
    if "structlog" in sys.modules:  # only what reads and writes blocks has it
        from ha.console.library_logs import silence_libraries

        silence_libraries()
    seconds, user = place.timeout_seconds, own_user()
    limits = CallLimits(
        connect_seconds=min(DEFAULT_LIMITS.connect_seconds, seconds),
        attempt_seconds=min(DEFAULT_LIMITS.attempt_seconds, seconds),
        total_seconds=seconds,
    )
    async with Namenodes.of(
        place.configuration, nameservice=place.nameservice, user=user, limits=limits
    ) as namenodes:
        tree = Tree(namenodes, user, place.nameservice)
        session = Session(command, place, tree, changes=changes)
        with suppress(_NoAnswer), session.trying(place.nameservice):
            await work(session)
        return session
