"""Has the ZKFC of a target carry out a hand-over, and asks the NameNodes for its result.

What a ZKFC answers is half of the truth: the NameNodes are asked afterwards in every case, and
only what they say is reported as done.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from ha.cli.operate.plan.handover import HandoverPlan
from ha.cluster.unreachable import ask_again
from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys
from ha.conf.topology import HostPort, NameNodeAddress
from ha.console.result import Code, CommandOutcome, Ending
from ha.service import errors
from ha.service.client import state_of
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient

CONNECT_SECONDS = 5.0
LOOK_SECONDS = 1.0
PAUSE_SECONDS = 0.1
SETTLE_SECONDS = 10.0
"""How long after an answer the NameNodes may take to show it."""
SERVER_SLACK_SECONDS = 5.0
STAND_BACK_SECONDS = 10.0
"""How long other candidates stay out of the election for the target, unless released sooner."""

LOOK = "nnha status, and nnha history"


def patience_seconds(configuration: Configuration) -> float:
    """Return how long a hand-over may take, in seconds: longer than the ZKFC itself waits.

    See docs/reference/zkfc.md#time-limits-of-a-hand-over.
    """
    return (
        configuration.get(keys.NEW_ACTIVE_TIMEOUT)
        + 2 * configuration.get(keys.GRACEFUL_FENCE_TIMEOUT)
        + SERVER_SLACK_SECONDS
    )


class HandOver:
    """One hand-over to one target."""

    def __init__(
        self,
        command: str,
        plan: HandoverPlan,
        nodes: Sequence[NameNodeAddress],
        *,
        wait_seconds: float,
    ) -> None:
        self._command = command
        self._plan = plan
        self._nodes = {one.namenode: one for one in nodes}
        self._began = _now()
        self._deadline = self._began + wait_seconds

    async def switch(self, *, reason: str = "") -> Ending:
        """Have the active step back for the target, and return how it ended."""
        try:
            limit = min(CONNECT_SECONDS, self._seconds_left())
            client = await ZkfcClient.open(self._target.zkfc, deadline_seconds=limit)
        except errors.ServiceError as failure:
            return self._report_unreachable(failure)
        try:
            await client.graceful_failover(deadline_seconds=self._seconds_left(), reason=reason)
        except errors.AccessDenied as failure:
            return self._report_denied(failure)
        except errors.ServiceUnreachable as failure:
            told, more = f"stopped answering ({failure});", "; the hand-over may still happen"
            return await self._conclude(told, more)
        except errors.ServiceRefused as failure:
            if str(failure).startswith(errors.NO_ZOOKEEPER_TO_ASK):
                return await self._report_not_begun(str(failure))
            return await self._after_refusal(str(failure))
        finally:
            await client.close()
        return await self._conclude("says that it is done, but")

    async def without_active(self) -> Ending:
        """Fail over without an active: the others leave the election, and the target joins it."""
        asked = [self._nodes[name].zkfc for name in self._plan.others]
        try:
            await asyncio.gather(*(self._cede(one, STAND_BACK_SECONDS) for one in asked))
            try:
                await self._ask_to_cede(self._target.zkfc, 0.0)
            except errors.AccessDenied as failure:
                return self._report_denied(failure)
            except errors.ServiceError as failure:
                return self._report_unreachable(failure)
            states = await self._watch(lambda found: _active(found) is not None)
        finally:
            await asyncio.gather(*(self._cede(one, 0.0) for one in asked))
        if _active(states) == self._plan.target:
            return self._ending(
                states, CommandOutcome.DONE, Code.DONE, f"{self._plan.target} is active"
            )
        return self._ending(
            states,
            CommandOutcome.FAILED,
            Code.HAND_OVER_FAILED,
            f"{self._plan.target} did not become active within {self._seconds_spent():.0f} s; "
            f"{_in_words(states)}",
            "nnha explain; the ZKFC may still take over",
        )

    # -- what became of it -------------------------------------------------------------------------

    async def _conclude(self, told: str, more: str = "") -> Ending:
        """Report the hand-over as done if the NameNodes show it, else as unknown."""
        states = await self._watch(lambda found: _active(found) == self._plan.target)
        if _active(states) == self._plan.target:
            return self._done(states)
        message = f"the ZKFC of {self._plan.target} {told} {_in_words(states)}{more}"
        outcome, code = CommandOutcome.UNKNOWN, Code.OUTCOME_UNKNOWN
        return self._ending(states, outcome, code, message, LOOK)

    async def _after_refusal(self, reason: str) -> Ending:
        """Report a hand-over that failed half-way, and which NameNode is active now."""
        states = await self._watch(lambda found: _active(found) is not None)
        if _active(states) == self._plan.target:
            return self._done(states)
        return self._ending(
            states,
            CommandOutcome.FAILED,
            Code.HAND_OVER_FAILED,
            f"the ZKFC of {self._plan.target} could not take over: {reason}; {_in_words(states)}",
            "nnha explain",
        )

    async def _report_not_begun(self, reason: str) -> Ending:
        """Report that nothing was begun: the ZKFC reads ZooKeeper before it asks for a cede."""
        states = await self._look()
        return self._ending(
            states,
            CommandOutcome.UNREACHABLE,
            Code.ZOOKEEPER_UNREACHABLE,
            f"the ZKFC of {self._plan.target} {reason}; {_in_words(states)}",
            "restore ZooKeeper, no failover is possible without it; nnha doctor",
        )

    def _done(self, states: "States") -> Ending:
        former = f" in place of {self._plan.active}" if self._plan.active else ""
        message = f"{self._plan.target} is active{former}, after {self._seconds_spent():.2f} s"
        return self._ending(states, CommandOutcome.DONE, Code.DONE, message)

    def _report_denied(self, failure: errors.ServiceError) -> Ending:
        return self._ending(
            {},
            CommandOutcome.UNAUTHORISED,
            Code.ACCESS_DENIED,
            f"the ZKFC of {self._plan.target} refuses this request from us: {failure}",
            "run it as the user of the ZKFC, or add yours to dfs.cluster.administrators",
        )

    def _report_unreachable(self, failure: errors.ServiceError) -> Ending:
        gone = isinstance(failure, errors.ServiceUnreachable) and failure.refused
        return self._ending(
            {},
            CommandOutcome.UNREACHABLE,
            Code.ZKFC_UNREACHABLE,
            f"the ZKFC of {self._plan.target} at {self._target.zkfc} does not answer: {failure}",
            f"start it: nnha zkfc -D dfs.ha.namenode.id={self._plan.target}"
            if gone
            else ask_again(self._target.zkfc.host),
        )

    def _ending(
        self, states: "States", outcome: CommandOutcome, code: Code, message: str, hint: str = ""
    ) -> Ending:
        return Ending(
            self._command,
            outcome,
            code,
            message,
            hint=hint,
            target=self._plan.target,
            active_before=self._plan.active,
            active_now=_active(states) if states else self._plan.active,
            seconds=round(self._seconds_spent(), 3),
        )

    # -- asking ------------------------------------------------------------------------------------

    @property
    def _target(self) -> NameNodeAddress:
        return self._nodes[self._plan.target]

    def _seconds_left(self) -> float:
        return max(0.1, self._deadline - _now())

    def _seconds_spent(self) -> float:
        return _now() - self._began

    async def _ask_to_cede(self, address: HostPort, seconds: float) -> None:
        limit = min(CONNECT_SECONDS, self._seconds_left())
        async with ZkfcClient.connected(address, deadline_seconds=limit) as client:
            await client.cede_active(round(seconds * 1000), deadline_seconds=CONNECT_SECONDS)

    async def _cede(self, address: HostPort, seconds: float) -> None:
        """Ask a candidate to cede; one that does not answer may win instead of the target."""
        with suppress(errors.ServiceError):
            await self._ask_to_cede(address, seconds)

    async def _watch(self, enough: "Callable[[States], bool]") -> "States":
        """Look until it is enough or the time is over; the last look."""
        end = min(self._deadline, _now() + SETTLE_SECONDS)
        while True:
            states = await self._look()
            if enough(states) or _now() >= end:
                return states
            await asyncio.sleep(PAUSE_SECONDS)

    async def _look(self) -> "States":
        found = await asyncio.gather(*map(_state, self._nodes.values()))
        return dict(zip(self._nodes, found, strict=True))


States = dict[str, ServiceState | None]
"""None: it did not answer."""


async def _state(node: NameNodeAddress) -> ServiceState | None:
    try:
        return await state_of(node.service, deadline_seconds=LOOK_SECONDS)
    except errors.ServiceError:
        return None


def _active(states: States) -> str | None:
    """Return the active NameNode, if exactly one says that it is."""
    found = [name for name, state in states.items() if state is ServiceState.ACTIVE]
    return found[0] if len(found) == 1 else None


def _in_words(states: States) -> str:
    told = [f"{name} {state or 'does not answer'}" for name, state in states.items()]
    return "at present: " + ", ".join(told)


def _now() -> float:
    return asyncio.get_running_loop().time()
