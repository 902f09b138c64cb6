"""What every ``nnha fs`` command shares: options, the connection, results, failures, the end."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any, Final

import click

from files import errors
from files.cli.forms import Entry
from files.cli.spelling import Unfit
from files.cli.tree import Tree
from files.held_tokens import held_token
from files.namenodes import DEFAULT_LIMITS, CallLimits, Namenodes
from ha.conf.own_user import call_as, own_user
from ha.console import exit_codes
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.output import FORMATS, plain, show
from ha.console.result import API_VERSION, CommandOutcome
from ha.daemon import event_loop
from ha.record import dataclass, field
from ha.security.caller import Role

ROLES: Final = (Role.CLIENT, Role.ADMIN)
READING: Final = frozenset({"fs cat", "fs tail", "fs get", "fs checksum"})
"""Commands that change nothing in HDFS, so that no answer leaves nothing unknown there."""
_REFUSED: Final = CommandOutcome.REFUSED
_QUOTA: Final = "delete something (nnha fs rm --skip-trash), or have the quota raised"
_KINDS: Final = (
    (errors.Denied, CommandOutcome.UNAUTHORISED, "ACCESS_DENIED", "nnha fs ls -d shows the rights"),
    (errors.NotFound, _REFUSED, "NO_SUCH_PATH", "nnha fs ls shows what is there"),
    (errors.AlreadyExists, _REFUSED, "PATH_EXISTS", ""),
    (errors.QuotaExceeded, _REFUSED, "QUOTA_EXCEEDED", _QUOTA),
    (errors.InSafeMode, _REFUSED, "IN_SAFE_MODE", "nnha safemode get"),
    (errors.Refused, _REFUSED, "NAMENODE_REFUSED", ""),
    (errors.Unsupported, _REFUSED, "UNFIT_PATH", ""),
    (errors.NotProven, CommandOutcome.UNAUTHORISED, "NO_TICKETS", ""),
    (errors.Unreachable, CommandOutcome.UNREACHABLE, "NO_ANSWER", ""),
    (errors.OutcomeUnknown, CommandOutcome.UNKNOWN, "OUTCOME_UNKNOWN", ""),
    (Exception, CommandOutcome.FAILED, "COPY_FAILED", ""),
)
"""What each error means: the first that fits counts."""


class Failed(Exception):
    """A copy has ended in the middle; the text says what is left of it, and where."""


class NoAnswer(Exception):
    """No NameNode is active, or we have no tickets: each further path would end as this one."""


@dataclass(slots=True)
class Session:
    """One command under way: whom it asks, what it has found and done, and what failed."""

    command: str
    place: ClusterCommand
    tree: Tree
    results: list[Mapping[str, object]] = field(default_factory=list)
    failures: list[Mapping[str, object]] = field(default_factory=list)
    outcomes: set[CommandOutcome] = field(default_factory=set)
    changed: bool = False

    @property
    def for_people(self) -> bool:
        """Whether lines are printed, and not one document at the end."""
        return self.place.output == FORMATS[0]

    def found(self, document: Mapping[str, object], text: str | None = None) -> None:
        """Print one line, or keep what a document says of it."""
        if not self.for_people:
            self.results.append(document)
        elif text is not None:
            click.echo(plain(text) if sys.stdout.isatty() else text)

    def did(
        self, path: str, text: str | None = None, *, changed: bool = True, **facts: object
    ) -> None:
        """Note a change, or that none was needed."""
        self.changed = self.changed or changed
        self.found({"path": path, **facts}, text)

    @contextmanager
    def trying(self, path: str) -> Iterator[None]:
        """Report an error about one path, and go on; where no NameNode answers, end."""
        try:
            yield
        except (Unfit, Failed, errors.FilesError) as error:
            _, outcome, code, hint = next(row for row in _KINDS if isinstance(error, row[0]))
            if outcome is CommandOutcome.UNKNOWN and self.command in READING:
                outcome, code = CommandOutcome.UNREACHABLE, "NO_ANSWER"
            if isinstance(error, Unfit):
                outcome, code, hint = _REFUSED, error.code, error.hint
            user = f"{self.tree.user} may not: " if code == "ACCESS_DENIED" else ""
            text = f"{user}{error}"
            facts = {"path": path, "outcome": outcome.value, "code": code, "message": text}
            self.failures.append({**facts, "hint": hint or None})
            self.outcomes.add(outcome)
            if self.for_people:
                sys.stdout.flush()
                text = f"nnha {self.command}: {path}: {text}" + (f"\n→ {hint}" if hint else "")
                click.echo(plain(text, "\n"), err=True)
            if isinstance(error, errors.NotProven | errors.Unreachable | errors.OutcomeUnknown):
                raise NoAnswer from error

    async def named(self, paths: Sequence[str]) -> Sequence[Entry]:
        """Return what the paths and patterns of the command line stand for."""
        found: list[Entry] = []
        for path in paths:
            with self.trying(path):
                found += await self.tree.expanded(path)
        return found

    async def below(self, top: Entry, levels: int | None = None) -> AsyncIterator[Entry]:
        """Yield an entry, and what is on some levels below it, directories before their entries.

        A directory that cannot be listed is reported, and the others go on.
        """
        yield top
        open_ = [(top, self.tree.entries(top))] if top.is_directory and levels != 0 else []
        while open_:
            directory, entries = open_[-1]
            ended = True
            with self.trying(directory.shown):
                async for one in entries:
                    yield one
                    if one.is_directory and (levels is None or len(open_) < levels):
                        open_.append((one, self.tree.entries(one)))
                        ended = False
                        break
            if ended:
                open_.pop()

    def exit_code(self) -> int:
        """Return the code for all that happened; a part that was changed is not "refused"."""
        if CommandOutcome.UNKNOWN in self.outcomes:
            return exit_codes.OUTCOME_UNKNOWN
        if len(self.outcomes) > 1 or (self.outcomes and self.changed):
            return exit_codes.FAILED
        return next((one.exit_code for one in self.outcomes), exit_codes.DONE)


def about_files(
    command: str, formats: tuple[str, ...] = FORMATS
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Add the options of every command about files; its coroutine gets a ``Session``."""

    def decorate(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @about_a_cluster(f"fs {command}", timeout_seconds=120.0, formats=formats, roles=ROLES)
        @wraps(work)
        def wrapper(*, place: ClusterCommand, **own: Any) -> None:  # noqa: ANN401 - of click
            session = event_loop.run(_run(f"fs {command}", place, partial(work, **own)))
            code = session.exit_code()
            if not session.for_people:
                facts = {"command": session.command, "nameservice": place.nameservice}
                ends = {"results": session.results, "failures": session.failures}
                document = {"apiVersion": API_VERSION, **facts, "exit_code": code, **ends}
                show(place.output, document, "")
            sys.exit(code)

        return wrapper

    return decorate


async def _run(
    command: str, place: ClusterCommand, work: Callable[[Session], Awaitable[None]]
) -> Session:
    most, usual = place.timeout_seconds, DEFAULT_LIMITS
    limits = CallLimits(
        connect_seconds=min(usual.connect_seconds, most),
        attempt_seconds=min(usual.attempt_seconds, most),
        total_seconds=most,
    )
    token = held_token(place.nameservice)
    if token is not None:
        call_as(token.owner)
    namenodes = Namenodes.of(
        place.configuration, nameservice=place.nameservice, user=own_user(), limits=limits,
        token=token,
    )  # fmt: skip
    async with namenodes:
        session = Session(command, place, Tree(namenodes, own_user(), place.nameservice))
        with suppress(NoAnswer), session.trying(place.nameservice):
            await work(session)
        return session
