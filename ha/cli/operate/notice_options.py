"""What pause and drain have in common: their options, who asks, until when, and the wait."""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from ha.cli.operate.plan.notice_results import Members
from ha.conf.errors import BadValue
from ha.conf.keys.units import duration
from ha.conf.own_user import own_user
from ha.console.cluster_options import ClusterCommand
from ha.console.durations import span
from ha.console.exit_codes import INTERRUPTED, OUTCOME_UNKNOWN
from ha.console.options import Seconds
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.notices.model import BadNotice, Member, Pause, time_text
from ha.notices.store import Noted, read_members

POLL_SECONDS = 0.1


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
DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The owner, the reason, the beginning and the end."""

    owner: str
    reason: str
    since: datetime
    until: datetime | None

    def in_words(self) -> str:
        """Return e.g. ``for 2h 0m, until 2026-...``."""
        if self.until is None:
            return "until an operator ends it"
        left = span((self.until - self.since).total_seconds())
        return f"for {left}, until {time_text(self.until)}"


def terms(*, for_seconds: float | None, until_ended: bool, reason: str | None) -> Terms:
    """Make the terms from the options; raise click.UsageError where they do not suffice."""
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
    return Terms(owner=owner, reason=reason.strip(), since=since, until=until)


async def members_that_lack(
    session: Session,
    settings: ZooKeeperSettings,
    obeys: Callable[[Member], bool],
    *,
    holds: Callable[[], Awaitable[bool]],
    seconds: float,
) -> Members:
    """Wait until each running ZKFC obeys, while what it is to obey holds; those that did not.

    A ZKFC that does not run has no member; it reads the notices when it starts.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        found = await read_members(session, settings)
        lacking = {
            name: one for name, one in found.items() if isinstance(one, BadNotice) or not obeys(one)
        }
        over = asyncio.get_running_loop().time() >= deadline
        if not lacking or over or not await holds():
            return lacking
        await asyncio.sleep(POLL_SECONDS)


async def still_holds(found: Awaitable[Noted[Pause] | None], since: datetime | None) -> bool:
    """Return whether the notice of time ``since`` is in force; with None, whether there is none."""
    try:
        noted = await found
    except BadNotice:
        return False
    if noted is None:
        return since is None
    return noted.value.since == since and not noted.value.over(datetime.now(UTC))


@contextmanager
def told_when_interrupted(
    place: ClusterCommand, command: str, text: str, *, target: str | None = None
) -> Iterator[None]:
    """Warn a user that interrupts the wait: what was begun may go on."""
    try:
        yield
    except KeyboardInterrupt:
        place.audit(command, OUTCOME_UNKNOWN, target, "interrupted")
        click.echo(f"INTERRUPTED: {text}; look with: nnha status", err=True)
        sys.exit(INTERRUPTED)
