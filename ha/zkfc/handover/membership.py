"""Publishes our controller's member znode, and asks a peer's controller to take over from us."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Protocol

from ha.conf.keys.units import HostPort, host_port
from ha.health.core import Health
from ha.notices.model import Member
from ha.notices.seen import Notices
from ha.service.errors import ServiceError
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.candidacy.eligibility import Standing
from ha.zkfc.candidacy.state import Candidacy
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings

CONNECT_SECONDS = 2.0


class NoticeBoard(Protocol):
    """Publishes a member and watches the notices in ZooKeeper; see ``ha.notices.board``."""

    def publish(self, member: Member) -> None:
        """Write this member, now and again in each new session."""

    async def run(self) -> None:
        """Work until cancelled."""


OpenBoard = Callable[[Callable[[Notices], None]], NoticeBoard]
"""Builds the board; its argument is called with the notices whenever they change."""


class Membership:
    """Keeps our controller's member znode up to date."""

    def __init__(
        self,
        settings: ZkfcSettings,
        board: NoticeBoard | None,
        version: str,
        around: Surroundings = REAL_WORLD,
    ) -> None:
        self._settings = settings
        self._around = around
        self._board = board
        self._version = version
        self._started = around.now()
        self._host = socket.gethostname()
        self._draining: asyncio.Task[None] | None = None

    def initial_standing(self) -> Standing:
        """Return our standing at the start; without a board, that of empty notices."""
        own, rank = self._settings.own.namenode, self._settings.rank
        if self._board is None:
            return Standing(namenode=own, rank=rank)
        return Standing(namenode=own, rank=rank, notices=None, no_ready_peer_since=None)

    async def run(self) -> None:
        """Watch the notices and publish our member, until cancelled."""
        if self._board is not None:
            await self._board.run()

    def publish(
        self, candidacy: Candidacy, health: Health, port: int, *, lock_of_earlier_process: bool
    ) -> None:
        """Publish our state; ``port`` is our RPC server's, 0 before it listens."""
        if self._board is None or port == 0:
            return
        own, standing, last = self._settings.own, candidacy.standing, candidacy.last_drain
        http, notices = own.zkfc_http, standing.notices
        pause = None if notices is None else notices.pause
        drain = None if notices is None else notices.drain
        self._board.publish(
            Member(
                namenode=own.namenode,
                zkfc_http=str(http) if http.port else "",
                zkfc_rpc=str(HostPort(own.zkfc.host, port)),
                pid=os.getpid(),
                started=self._started,
                health=health.value,
                state="unknown" if candidacy.reported is None else candidacy.reported.value,
                ready=standing.ready,
                not_ready_reason=standing.not_ready_reason,
                nofailover=standing.rank.nofailover,
                priority=standing.rank.priority,
                in_election=candidacy.joined,
                out_because=candidacy.out_because,
                version=self._version,
                pause_seen=None if pause is None else pause.since,
                drain_seen=None if drain is None else drain.since,
                host=self._host,
                user=self._settings.user,
                hand_over_failure="" if last is None else last.failure,
                lock_of_earlier_process=lock_of_earlier_process,
            )
        )

    def start_drain(self, zkfc: str, report: Callable[[str], None]) -> None:
        """Hand over to this controller in the background; ``report`` gets the failure, or ''."""
        self._draining = asyncio.create_task(self._drain(zkfc, report), name="drain")

    def stop(self) -> None:
        """Cancel a hand-over that is under way."""
        if self._draining is not None:
            self._draining.cancel()

    async def _drain(self, zkfc: str, report: Callable[[str], None]) -> None:
        failure = "it was given up"
        try:
            because = f"{self._settings.own.namenode} is drained"
            failure = await self.hand_over_to(zkfc, because=because)
        finally:
            report(failure)

    async def hand_over_to(self, zkfc: str, *, because: str) -> str:
        """Ask the controller at ``zkfc`` for gracefulFailover; return why it failed, or nothing."""
        settings = self._settings
        seconds = (
            2 * settings.graceful_fence_timeout_seconds
            + settings.new_active_timeout_seconds
            + CONNECT_SECONDS
        )
        try:
            async with ZkfcClient.connected(
                host_port()(zkfc),
                deadline_seconds=CONNECT_SECONDS,
                connect=self._around.connect,
            ) as client:
                await client.graceful_failover(deadline_seconds=seconds, reason=because)
        except (ServiceError, ValueError) as failure:
            return str(failure)
        return ""
