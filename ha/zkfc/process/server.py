"""Serves ZKFCProtocol: checks the callers of cedeActive and gracefulFailover, and executes them."""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from ha.conf.keys.candidate import MAX_CEDE, MAX_REQUESTS
from ha.rpc.protocol import Call
from ha.security.lists.access_list import GroupsOf, groups_here
from ha.service.errors import AccessDenied, ServiceFailed
from ha.zkfc.pages.metrics import LIMITS_MET
from ha.zkfc.record.takeover_record import HandOverRequest
from ha.zkfc.settings.settings import ZkfcSettings

log = structlog.get_logger()

MAX_REASON_CHARACTERS = 500


class ZkfcFace:
    """Implements ZKFCProtocol for administrators and our own user.

    See docs/reference/zkfc.md#access.
    """

    def __init__(
        self,
        settings: ZkfcSettings,
        *,
        cede: Callable[[float, bytes], Awaitable[None]],
        hand_over: Callable[[HandOverRequest], Awaitable[None]],
        groups_of: GroupsOf = groups_here,
    ) -> None:
        self._settings = settings
        self._cede = cede
        self._hand_over = hand_over
        self._groups_of = groups_of
        self._rate = RequestRate(settings.max_requests_a_minute)

    async def cede_active(self, millis: int, call: Call) -> None:
        """Cede for ``millis``, capped by the limit; 0 or less releases us."""
        await self._admit(call)
        if millis > 0:  # a release is never refused: there might be no candidate
            self._check_rate(call, "cedeActive")
        log.info("zkfc.cede.asked", millis=millis, user=call.user, host=call.host)
        seconds = min(millis / 1000, self._settings.max_cede_seconds)
        if seconds < millis / 1000:
            # The response has no field for the granted time; weeks would leave no successor.
            log.warning(
                "zkfc.cede.capped",
                asked_seconds=millis / 1000,
                granted_seconds=seconds,
                user=call.user,
                host=call.host,
                key=MAX_CEDE.name,
            )
        await self._cede(seconds, call.client_id)

    async def graceful_failover(self, call: Call) -> None:
        """Make our NameNode active by a planned hand-over."""
        await self._admit(call)
        self._check_rate(call, "gracefulFailover")
        reason = call.context[:MAX_REASON_CHARACTERS]
        log.info("zkfc.handover.asked", user=call.user, host=call.host, reason=reason)
        await self._hand_over(HandOverRequest(call.user, call.host, reason))

    async def _admit(self, call: Call) -> None:
        """Raise AccessDenied unless the service-level list and that of admins admit the user."""
        settings = self._settings
        if not await settings.protocol_users.admits(call.user, self._groups_of):
            raise self._deny(call, "security.zkfc.protocol.acl does not name that user")
        if call.user == settings.user:
            return
        if not await settings.administrators.admits(call.user, self._groups_of):
            who = f"{settings.user} and the users and groups of dfs.cluster.administrators"
            raise self._deny(call, f"it is for {who}")

    def _check_rate(self, call: Call, kind: str) -> None:
        """Raise ServiceFailed if this caller has sent too many requests of this kind."""
        wait = self._rate.admit(call.user, kind, asyncio.get_running_loop().time())
        if wait <= 0:
            return
        LIMITS_MET.labels("requests_of_identity").inc()
        most = self._settings.max_requests_a_minute
        log.warning("zkfc.asked_too_often", user=call.user, host=call.host, method=kind)
        raise ServiceFailed(
            f"{call.user} has asked for {kind} {most} times within a minute "
            f"({MAX_REQUESTS.name}): nothing was changed; try again in {math.ceil(wait)} s"
        )

    def _deny(self, call: Call, why: str) -> AccessDenied:
        log.warning(
            "zkfc.access.denied", user=call.user, host=call.host, method=call.method, reason=why
        )
        return AccessDenied(f"Access denied for user {call.user}: {call.method}: {why}")


WINDOW_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 256
"""The number of callers to remember; the one that was quiet longest is dropped."""


class RequestRate:
    """Limits the requests of each caller and kind to ``most`` in a minute; 0: no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def admit(self, caller: str, kind: str, now: float) -> float:
        """Return 0 and count the request; if there were too many, the seconds until the next."""
        if not self._most:
            return 0.0
        asked = self._asked.setdefault((caller, kind), deque())
        self._asked.move_to_end((caller, kind))
        while asked and asked[0] <= now - WINDOW_SECONDS:
            asked.popleft()
        if len(asked) >= self._most:
            return asked[0] + WINDOW_SECONDS - now
        asked.append(now)
        if len(self._asked) > MOST_REMEMBERED:
            self._asked.popitem(last=False)
        return 0.0
