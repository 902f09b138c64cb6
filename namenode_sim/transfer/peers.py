"""What the other NameNodes of the nameservice say about themselves."""

import asyncio
from collections.abc import Sequence

from ha.conf.topology import NameNodeAddress
from ha.record import dataclass
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError, ServiceFaulted, ServiceUnreachable
from ha.service.model import ServiceState
from ha.service.no_answer import NoAnswer, why_no_answer


class Peers:
    """Asks the other NameNodes for their state; one connection each, kept open.

    Several callers at a time share one round, so that a crowd of parked clients costs the peers
    no more than one of them.
    """

    def __init__(self, addresses: Sequence[NameNodeAddress], *, deadline_seconds: float) -> None:
        self._addresses = {peer.namenode: peer for peer in addresses}
        self._deadline_seconds = deadline_seconds
        self._clients: dict[str, ServiceClient] = {}
        self._round: asyncio.Task[bool] | None = None

    async def any_active(self) -> bool:
        """Return whether a peer says, after this was called, that it is active.

        A peer that does not answer does not count.  An answer to an earlier question may be of
        before the peer was killed: a caller that then sends its client there makes it wait a
        second.
        """
        joined = self._round is not None and not self._round.done()
        active = await self._shared_round()
        return await self._shared_round() if active and joined else active

    async def _shared_round(self) -> bool:
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self._ask_all(), name="ask-peers")
        return await asyncio.shield(self._round)

    async def close(self) -> None:
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    async def _ask_all(self) -> bool:
        answers = await asyncio.gather(*(self._is_active(name) for name in self._addresses))
        return any(answers)

    async def _is_active(self, name: str) -> bool:
        try:
            async with asyncio.timeout(self._deadline_seconds):
                client = self._clients.get(name)
                if client is None:
                    client = await ServiceClient.open(
                        self._addresses[name].service, deadline_seconds=self._deadline_seconds
                    )
                    self._clients[name] = client
                status = await client.status(deadline_seconds=self._deadline_seconds)
        except (ServiceError, TimeoutError):
            await self._forget(name)
            return False
        return status.state is ServiceState.ACTIVE

    async def _forget(self, name: str) -> None:
        client = self._clients.pop(name, None)
        if client is not None:
            await client.close()


@dataclass(frozen=True, slots=True)
class _Unknown:
    why: str


@dataclass(frozen=True, slots=True)
class Sight:
    """Which NameNodes are active; and of which that is not known, each with the reason."""

    active: tuple[str, ...]
    unknown: tuple[str, ...]


async def look_for_active(
    addresses: Sequence[NameNodeAddress], *, deadline_seconds: float
) -> Sight:
    """Ask each of these NameNodes once; only an answer or a refused connection shows anything.

    One that hangs, or a host that is silent, may be an active one.
    """
    states = await asyncio.gather(*(_state_of(one, deadline_seconds) for one in addresses))
    pairs = list(zip((one.namenode for one in addresses), states, strict=True))
    return Sight(
        tuple(name for name, state in pairs if state is ServiceState.ACTIVE),
        tuple(f"{name} ({state.why})" for name, state in pairs if isinstance(state, _Unknown)),
    )


async def _state_of(
    address: NameNodeAddress, deadline_seconds: float
) -> ServiceState | _Unknown | None:
    """Return a NameNode's state; None if none runs or it is still starting."""
    try:
        async with asyncio.timeout(deadline_seconds):
            client = await ServiceClient.open(address.service, deadline_seconds=deadline_seconds)
            try:
                return (await client.status(deadline_seconds=deadline_seconds)).state
            finally:
                await client.close()
    except ServiceUnreachable as failure:
        ended = why_no_answer(failure) is NoAnswer.NOT_LISTENING
        return None if ended else _Unknown(str(failure))
    except ServiceFaulted:
        return None
    except (ServiceError, TimeoutError) as failure:
        return _Unknown(str(failure) or f"no answer in {deadline_seconds:g} s")
