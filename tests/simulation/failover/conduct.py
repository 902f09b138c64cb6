"""Checks what controllers do with a lock, a request to cede and an unhealthy NameNode."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import Message

from ha.elector.model import Link, Role
from ha.rpc.proto.zkfc_pb2 import CedeActiveRequestProto
from tests.simulation.failover.cluster import Cluster
from tests.simulation.failover.lasting import Lasting

ILL_SECONDS: Final = 15.0
"""How long a controller that runs may hold the lock for a NameNode that is dead or unwell."""
_CLOCKS: Final = 0.95
"""A controller's clock may run faster than the world's."""

Check = Callable[[bool, str, str], None]


@dataclass(slots=True)
class Seen:
    """What is known of one controller."""

    lock_since: float = 0.0
    told_at: float = -1.0
    """When it last told its NameNode to become active."""
    told_by: int = 0
    obeyed: int = 0
    """The number of the last such call that the NameNode has carried out."""
    out_until: float = 0.0
    """It has answered that it stands back at least until then."""
    released_at: float = -1.0
    """When it was last let back, or asked to take over."""
    asked: set[int] = field(default_factory=set)
    """Hand-overs to it that are under way, by the numbers of their calls."""
    ill: Lasting = field(default_factory=Lasting)


class Conduct:
    """Compares controllers with what they have promised, and with what they have been told."""

    def __init__(self, cluster: Cluster, check: Check) -> None:
        self._cluster = cluster
        self._check = check
        self._seen: Mapping[str, Seen] = {name: Seen() for name in cluster.hosts}

    # ---- told by the world -----------------------------------------------------------------

    def took_lock(self, name: str) -> None:
        """A controller's session has created the lock."""
        if name in self._seen:
            self._seen[name].lock_since = self._cluster.loop.now

    def called(self, receiver: str, method: str, number: int) -> None:
        """A call is sent."""
        seen = self._seen[receiver]
        if method == "transitionToActive":
            seen.told_at, seen.told_by = self._cluster.loop.now, number
        elif method == "gracefulFailover":
            seen.asked.add(number)

    def obeyed(self, name: str, number: int) -> None:
        """A NameNode is active by this call, or was it already."""
        self._seen[name].obeyed = max(self._seen[name].obeyed, number)

    def ended_call(
        self, receiver: str, request: Message, number: int, sent_at: float | None
    ) -> None:
        """A call has ended; ``sent_at`` is None where it failed."""
        seen = self._seen[receiver]
        if number in seen.asked:
            seen.asked.remove(number)
            self._released(seen)
        if not isinstance(request, CedeActiveRequestProto) or sent_at is None:
            return
        if request.millisToCede == 0:
            self._released(seen)
        elif seen.released_at < sent_at:
            # Else the release came while it was still busy, and which counts nobody can tell.
            seen.out_until = sent_at + _CLOCKS * request.millisToCede / 1000

    def _released(self, seen: Seen) -> None:
        seen.out_until, seen.released_at = 0.0, self._cluster.loop.now

    def died(self, name: str) -> None:
        """A controller's process is gone, and all that it knew."""
        self._released(self._seen[name])
        self._seen[name].asked.clear()

    # ---- now and then ----------------------------------------------------------------------

    def look(self) -> None:
        """What must not be, and what must not last."""
        owner = self._cluster.lock_owner()
        for name, seen in self._seen.items():
            if self._cluster.controller(name) is None:
                seen.ill = Lasting()
                continue
            if name == owner:
                self._rests_on_a_promotion(name, seen)
            self._stands_back(name, seen)
            self._leaves_when_ill(name, seen, owns=name == owner)

    def _rests_on_a_promotion(self, name: str, seen: Seen) -> None:
        """Who calls itself active has heard so from its NameNode, under this very lock."""
        state = self._cluster.controllers[name].elector.state
        session = self._cluster.ensemble.owner_of(self._cluster.lock)
        same = session is not None and session.number == self._cluster.session_of(name)
        if not same or state.role is not Role.ACTIVE or state.link is not Link.CONNECTED:
            return
        told, heard = seen.told_at >= seen.lock_since, seen.obeyed >= seen.told_by
        self._check(told, "I7", f"{name} calls itself active, and has told its NameNode nothing "
                                f"since it got the lock")  # fmt: skip
        self._check(heard, "I7", f"{name} calls itself active, and its NameNode has not carried "
                                 f"that out")  # fmt: skip

    def _stands_back(self, name: str, seen: Seen) -> None:
        """Who has agreed to stand back does so until its time is up, or somebody lets it go."""
        early = self._cluster.loop.now < seen.out_until and not seen.asked
        wants = self._cluster.controllers[name].elector.state.wanted
        self._check(not (early and wants), "P2", f"{name} stands for election again before "
                                                 f"{seen.out_until:.1f}, as agreed")  # fmt: skip

    def _leaves_when_ill(self, name: str, seen: Seen, *, owns: bool) -> None:
        """The lock of a NameNode that can serve nobody must become free."""
        cluster, now = self._cluster, self._cluster.loop.now
        life, controller = cluster.hosts[name].life("namenode"), cluster.hosts[name].life("zkfc")
        ill = life is None or not life.runs or bool(cluster.conditions[name].unwell)
        hindered = controller is None or not controller.runs or cluster.ensemble.away
        hindered = hindered or cluster.network.is_cut_off(name)
        excused = not owns or hindered or "pause" in cluster.known_bars(name)
        lasts = seen.ill.seconds(now, holds=ill and not excused)
        if lasts is not None:
            self._check(lasts < ILL_SECONDS, "L4", f"{name} keeps the lock, and its NameNode has "
                                                   f"been ill for {lasts:.0f} s")  # fmt: skip
