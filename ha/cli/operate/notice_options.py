"""What pause and drain have in common: their options, the notice that they write, the wait."""

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import click

from ha.cli.operate.plan import notice_results
from ha.cli.zookeeper_session import CONNECT_SECONDS, visit
from ha.cluster.agreement import CLOCK_ADVICE, clock_faults
from ha.cluster.candidates import until
from ha.cluster.daemon_queries import ask_clocks
from ha.conf.errors import BadValue
from ha.conf.keys.units import duration
from ha.conf.own_user import own_user
from ha.console.cluster_options import ClusterCommand
from ha.console.durations import span
from ha.console.exit_codes import INTERRUPTED, OUTCOME_UNKNOWN
from ha.console.options import Seconds
from ha.console.result import Code, CommandOutcome, Ending, Reason
from ha.daemon import event_loop
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.notices import store
from ha.notices.model import BadNotice, Member, Pause, time_text
from ha.record import dataclass, replace

POLL_SECONDS = 0.1
CLOCKS_SECONDS = 1.0
"""How long hosts are asked for their clocks, by which notices expire."""


class Duration(click.ParamType[float]):
    """``90s``, ``30m``, ``2h``, ``1d``: seconds, more than none."""

    name = "duration"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own shape
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Read it as the configuration's durations are read."""
        if isinstance(value, float):
            return value
        try:
            return duration("s", zero=False)(str(value))
        except BadValue as error:
            self.fail(f"{value!r} {error}", param, ctx)


FOR = click.option(
    "--for",
    "for_seconds",
    type=Duration(),
    default=None,
    metavar="TIME",
    help="How long: 90s, 30m, 2h, 1d.  It ends automatically.",
)
UNTIL_ENDED = click.option(
    "--until-ended", is_flag=True, help="Instead of --for: until an operator ends it."
)
REASON = click.option("--reason", default=None, help="The reason, shown to all operators.")
WAIT = click.option(
    "--wait",
    "wait_seconds",
    type=Seconds(min=0.0),
    default=30.0,
    show_default=True,
    help="Seconds to wait until the ZKFCs have seen it.",
)
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


def notice_of(*, for_seconds: float | None, until_ended: bool, reason: str | None) -> Pause:
    """Make the notice from the options; raise click.UsageError where they do not suffice."""
    if reason is None or not reason.strip():
        raise click.UsageError("Give the reason, for other operators: --reason TEXT.")
    if (for_seconds is None) is not until_ended:
        raise click.UsageError("Say for how long: --for TIME, or --until-ended.")
    # ZooKeeper's copy has milliseconds: compared with it, ours must not have more.
    since = datetime.fromisoformat(time_text(datetime.now(UTC)))
    try:
        until = None if for_seconds is None else since + timedelta(seconds=for_seconds)
    except OverflowError as error:
        raise click.UsageError("--for is too long; see --until-ended.") from error
    owner = f"{own_user()}@{socket.gethostname()}"
    return Pause(owner=owner, reason=reason.strip(), since=since, until=until)


def terms_text(notice: Pause) -> str:
    """Return e.g. ``for 2h 0m, until 2026-...: the reason``."""
    if notice.until is None:
        return f"until an operator ends it: {notice.reason}"
    left = span((notice.until - notice.since).total_seconds())
    return f"for {left}, until {time_text(notice.until)}: {notice.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeChange:
    """Begins or ends a pause, or the drain of ``node``, and waits until its ZKFCs have seen it."""

    place: ClusterCommand
    command: str
    what: str
    """What is written, for an operator that interrupts the wait."""
    describe: Callable[[str], str]
    """Say what was done, given the description of the former notice; empty: there was none."""
    notice: Pause | None
    """None ends the present one."""
    node: str | None = None
    """None: the pause, which all ZKFCs obey."""
    foreseen: str = ""
    """What --dry-run adds."""
    obeyed_in_part: Callable[[Member, str], Ending] | None = None
    """The ending where the node's ZKFC has seen its drain and is still in the election."""
    wait_seconds: float
    dry_run: bool

    def run(self) -> NoReturn:
        """Change it in a session of our own, and end the command."""
        seconds = max(CONNECT_SECONDS, self.place.timeout_seconds) + self.wait_seconds
        written = f"{self.what} may be written, and stays then"
        with warn_on_interrupt(self.place, self.command, written, target=self.node):
            ending = event_loop.run(
                visit(self.place, self.command, self._change, seconds=seconds, changes=True)
            )
        self.place.end(ending)

    async def _change(self, session: Session, settings: ZooKeeperSettings) -> Ending:
        try:
            found = await self._read(session, settings)
            former = "" if found is None else until(found.value)
        except BadNotice as failure:
            former = f"unreadable ({failure})"
        if self.notice is None and not former:
            absent = "there is no pause" if self.node is None else f"{self.node} is not drained"
            outcome, told = CommandOutcome.DONE, f"{absent}; nothing was changed"
            return Ending(self.command, outcome, Code.ALREADY_SO, told, target=self.node)
        message = self.describe(former)
        if self.dry_run:
            outcome, told = CommandOutcome.PLANNED, message + self.foreseen
            return Ending(self.command, outcome, Code.WOULD_BE_DONE, told, target=self.node)
        if self.node is None:
            await (
                store.clear_pause(session, settings)
                if self.notice is None
                else store.write_pause(session, settings, self.notice)
            )
        else:
            await (
                store.clear_drain(session, settings, self.node)
                if self.notice is None
                else store.write_drain(session, settings, self.node, self.notice)
            )
        lacking = await self._members_that_lack(session, settings)
        own = lacking.get(self.node) if self.node is not None else None
        if self.obeyed_in_part and isinstance(own, Member) and own.drain_seen == self._since:
            return self.obeyed_in_part(own, message)
        running = await store.read_members(session, settings)
        ending = notice_results.seen(
            self.command,
            message,
            running=len(running) if self.node is None else int(self.node in running),
            lacking=lacking,
            target=self.node,
            holds=await self._holds(session, settings),
        )
        clocks = await ask_clocks(
            self.place.configuration, self.place.nameservice, seconds=CLOCKS_SECONDS
        )
        wrong = tuple(Reason("clock", fault, CLOCK_ADVICE) for fault in clock_faults(clocks))
        return replace(ending, reasons=(*wrong, *ending.reasons))

    @property
    def _since(self) -> datetime | None:
        return None if self.notice is None else self.notice.since

    async def _read(
        self, session: Session, settings: ZooKeeperSettings
    ) -> store.Noted[Pause] | None:
        if self.node is None:
            return await store.read_pause(session, settings)
        return await store.read_drain(session, settings, self.node)

    def _obeys(self, member: Member) -> bool:
        """Return whether a ZKFC has done its part; one of another NameNode has none in a drain.

        The ZKFC of a drained NameNode must also be out of the election.
        """
        if self.node is None:
            return member.pause_seen == self._since
        if member.namenode != self.node:
            return True
        return member.drain_seen == self._since and (self.notice is None or not member.in_election)

    async def _members_that_lack(
        self, session: Session, settings: ZooKeeperSettings
    ) -> notice_results.Members:
        """Wait until each running ZKFC obeys, while the notice holds; return those that did not.

        A ZKFC that does not run has no member; it reads the notices when it starts.
        """
        deadline = asyncio.get_running_loop().time() + self.wait_seconds
        while True:
            found = await store.read_members(session, settings)
            lacking = {
                name: one
                for name, one in found.items()
                if isinstance(one, BadNotice) or not self._obeys(one)
            }
            over = asyncio.get_running_loop().time() >= deadline
            if not lacking or over or not await self._holds(session, settings):
                return lacking
            await asyncio.sleep(POLL_SECONDS)

    async def _holds(self, session: Session, settings: ZooKeeperSettings) -> bool:
        """Return whether our notice is in force; where we ended one, whether there is none."""
        try:
            found = await self._read(session, settings)
        except BadNotice:
            return False
        if found is None:
            return self.notice is None
        return found.value.since == self._since and not found.value.over(datetime.now(UTC))


@contextmanager
def warn_on_interrupt(
    place: ClusterCommand, command: str, text: str, *, target: str | None = None
) -> Iterator[None]:
    """Warn a user that interrupts the wait: what was begun may go on."""
    try:
        yield
    except KeyboardInterrupt:
        place.audit(command, OUTCOME_UNKNOWN, target, "interrupted")
        click.echo(f"INTERRUPTED: {text}; look with: nnha status", err=True)
        sys.exit(INTERRUPTED)
