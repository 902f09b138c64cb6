"""Watches the process that was active under our lock until it is harmless, or kills it.

See docs/reference/zkfc.md#a-superseded-process-that-hangs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from prometheus_client import Counter

from ha.daemon.own_delay import OwnDelay
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.health.core import OWN_DELAY_SHARE
from ha.notices.seen import Notices
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError, ServiceUnreachable
from ha.service.model import ProcessIdentity, ServiceState
from ha.service.no_answer import NoAnswer, why_no_answer
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.process_watch import Watched
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings
from ha.zkfc.takeover.superseded import Answer, Seen, Supersession, judge

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.5
"""The pause before each look, including the first: no successor can be active at once."""
ASK_SECONDS: Final = 1.0
"""The limit for its answer; the health monitor gave it more time while it held the lock."""
DELAY_STEPS: Final = 8

_ended = Counter(
    "nnha_zkfc_superseded_processes_ended",
    "Processes of the local NameNode that hung and were ended after another became active",
    ["node"],
)


class SupersededProcess:
    """Watches one process at a time; that of a later term replaces that of an earlier one."""

    def __init__(
        self,
        settings: ZkfcSettings,
        *,
        ours: Callable[[], bool],
        notices: Callable[[], Notices | None],
        read_active: Callable[[], Awaitable[ActiveNodeInfo | None]],
        around: Surroundings = REAL_WORLD,
    ) -> None:
        """Call ``ours`` for whether we hold the lock; ``read_active`` reads its holder."""
        self._own = settings.own
        self._wanted = settings.end_superseded
        self._ours = ours
        self._notices = notices
        self._read_active = read_active
        self._around = around
        self._following: asyncio.Task[None] | None = None

    @property
    def following(self) -> bool:
        """Whether a process is watched."""
        return self._following is not None and not self._following.done()

    def follow(self, process: ProcessIdentity, watched: Watched) -> None:
        """Watch a process that was active under our lock until the term ended."""
        self.stop()
        if not self._wanted:
            watched.close()
            return
        work = self._follow(process, watched, self._notices())
        self._following = asyncio.get_running_loop().create_task(work, name="superseded process")
        self._following.add_done_callback(lambda _: watched.close())

    def stop(self) -> None:
        """Stop watching."""
        if self._following is not None:
            self._following.cancel()
            self._following = None

    async def _follow(
        self, process: ProcessIdentity, watched: Watched, before: Notices | None
    ) -> None:
        silent = 0
        while not watched.ended(wait_millis=0):
            await asyncio.sleep(LOOK_SECONDS)
            successor = await self._successor(before)
            answer = await self._ask()
            silent, verdict = judge(silent, Seen(
                ours=self._ours(), successor=successor, answer=answer
            ))  # fmt: skip
            match verdict:
                case Supersession.LEAVE:
                    return
                case Supersession.END:
                    self._end(process, watched, successor)
                    return
                case Supersession.LOOK_AGAIN:
                    pass

    async def _successor(self, before: Notices | None) -> str:
        """Return the lock's present holder, if its own controller publishes that it is active.

        ``before`` are the notices from before our term's end; they may show our predecessor.
        """
        notices = self._notices()
        if notices is None or notices is before:
            return ""
        active = {one.namenode for one in notices.members if one.state == ServiceState.ACTIVE}
        if notices.lock_holder not in active - {self._own.namenode}:
            return ""
        try:
            holder = await self._read_active()
        except (ZooKeeperUnavailable, ZooKeeperRefused, BadBreadcrumb):
            return ""
        return holder.namenode if holder and holder.namenode == notices.lock_holder else ""

    async def _ask(self) -> Answer:
        with OwnDelay(ASK_SECONDS / DELAY_STEPS) as delay:
            try:
                async with ServiceClient.connected(
                    self._own.lifeline, deadline_seconds=ASK_SECONDS, connect=self._around.connect
                ) as client:
                    status = await client.status(deadline_seconds=ASK_SECONDS)
            except ServiceUnreachable as failure:
                late = delay.seconds >= OWN_DELAY_SHARE * ASK_SECONDS
                return Answer.UNCLEAR if late else ANSWERS[why_no_answer(failure)]
            except ServiceError:
                return Answer.SERVES
        return Answer.STANDS_BY if status.state is ServiceState.STANDBY else Answer.SERVES

    def _end(self, process: ProcessIdentity, watched: Watched, successor: str) -> None:
        facts = {"namenode": self._own.namenode, "pid": process.pid, "successor": successor}
        try:
            watched.kill()
        except OSError as failure:
            clients = "its clients wait in their connections until it ends or goes on"
            log.error("zkfc.superseded.not_ended", **facts, why=str(failure), consequence=clients)  # noqa: TRY400
            return
        _ended.labels(f"{self._own.nameservice}.{self._own.namenode}").inc()
        log.warning(
            "zkfc.superseded.ended", **facts,
            why="it gave no answer, and the lock and the role are another's; it could write "
            "nothing any more, and its clients waited in their connections",
        )  # fmt: skip


ANSWERS: Final = {
    NoAnswer.LATE: Answer.SILENT,
    NoAnswer.NOT_LISTENING: Answer.UNCLEAR,
    NoAnswer.UNUSABLE: Answer.SERVES,
    NoAnswer.BROKEN: Answer.UNCLEAR,
    NoAnswer.NOT_ASKED: Answer.UNCLEAR,
}
"""The answer that each kind of failed call counts as."""
