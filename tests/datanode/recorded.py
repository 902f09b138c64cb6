"""A connection to a NameNode in memory."""

from dataclasses import dataclass, field
from typing import TypeVar

from google.protobuf.message import Message

from datanode.namenodes.namenode_client import CALL_SECONDS

M = TypeVar("M", bound=Message)


@dataclass(slots=True)
class Recorded:
    """The NameNode takes everything; each call with its deadline."""

    calls: list[tuple[str, Message, float]] = field(default_factory=list)

    async def call(
        self,
        method: str,
        request: Message,
        response: type[M],
        *,
        deadline_seconds: float,
        context: str = "",
    ) -> M:
        assert request.IsInitialized(), request
        self.calls.append((method, request, deadline_seconds))
        return response()

    async def wait_closed(self) -> Exception:
        raise NotImplementedError

    async def close(self) -> None:
        self.calls.clear()

    def one(self, method: str, seconds: float = CALL_SECONDS) -> Message:
        ((called, request, deadline),) = self.calls
        assert (called, deadline) == (method, seconds)
        return request
