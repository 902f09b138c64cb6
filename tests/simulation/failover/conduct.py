"""Checks what controllers do with a lock, a request to cede and an unhealthy NameNode."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import Message

from ha.notices.model import FailoverRecord, FailoverResult
from ha.rpc.proto.zkfc_pb2 import CedeActiveRequestProto, GracefulFailoverRequestProto
from ha.service.model import ServiceState
from tests.simulation.failover.cluster import Cluster
from tests.simulation.failover.lasting import Lasting

ILL_SECONDS: Final = 15.0
"""How long a controller that runs may hold the lock for a NameNode that is dead or unwell."""
IDLE_SECONDS: Final = 30.0
"""The same, for one that is well and has not been made active: what is to be fenced may take 5 s,
and the promotion 8 s, and requests to ZooKeeper 5 s each."""
_CLOCKS: Final = 0.95
"""A controller's clock may run faster than the world's."""

Check = Callable[[bool, str, str], None]


@dataclass(slots=True)
class Seen:
    """What is known of one controller."""

    lock_since: float = 0.0
    lock: int = 0
    """The transaction that has made its newest lock."""
    under: dict[int, int] = field(default_factory=dict)
    """Under which of its locks each call to become active was sent."""
    served: set[int] = field(default_factory=set)
    """The locks under which its NameNode has become active."""
    told_at: float = -1.0
    """When it last asked its NameNode to become active."""
    told_by: int = 0
    obeyed: int = 0
    """The number of the last such call that the NameNode has carried out."""
    out_until: float = 0.0
    """It has answered that it stands back at least until then."""
    released_at: float = -1.0
    """When it was last let back, or asked to take over."""
    asked: set[int] = field(default_factory=set)
    """Hand-overs to it that are under way, by the numbers of their calls."""
    ceding: dict[int, float] = field(default_factory=dict)
    """Requests to stand back that are under way, by their numbers, and since when."""
    ill: Lasting = field(default_factory=Lasting)
    idle: Lasting = field(default_factory=Lasting)


class Conduct:
    """Compares controllers with what they have promised, and with what they were asked."""

    def __init__(self, cluster: Cluster, check: Check) -> None:
        self._cluster = cluster
        self._check = check
        self._seen: Mapping[str, Seen] = {name: Seen() for name in cluster.hosts}
        self.on_ceded: Callable[[str, float], None] = lambda _who, _asked_at: None

    # ---- reported by the world -----------------------------------------------------------------

    def took_lock(self, name: str, number: int) -> None:
        if name in self._seen:
            self._seen[name].lock_since = self._cluster.loop.now
            self._seen[name].lock = number

    def called(self, receiver: str, method: str, number: int) -> None:
        seen = self._seen[receiver]
        if method == "transitionToActive":
            seen.told_at, seen.told_by = self._cluster.loop.now, number
            seen.under[number] = seen.lock

    def begun_call(self, receiver: str, request: Message, number: int) -> None:
        seen = self._seen[receiver]
        if isinstance(request, GracefulFailoverRequestProto):
            seen.asked.add(number)
        elif isinstance(request, CedeActiveRequestProto) and request.millisToCede > 0:
            seen.ceding[number] = self._cluster.loop.now

    def obeyed(self, name: str, number: int) -> None:
        """Note that a NameNode is active by this call, or was it already."""
        seen = self._seen[name]
        seen.obeyed = max(seen.obeyed, number)
        if number in seen.under:
            seen.served.add(seen.under[number])

    def ended_call(
        self, receiver: str, request: Message, number: int, sent_at: float | None
    ) -> None:
        """Note that a call has ended; ``sent_at`` is None where it failed."""
        seen = self._seen[receiver]
        if number in seen.asked:
            seen.asked.remove(number)
            self._released(seen)
        if number in seen.ceding:
            self.on_ceded(receiver, seen.ceding.pop(number))
        if not isinstance(request, CedeActiveRequestProto) or sent_at is None:
            return
        if request.millisToCede == 0:
            self._released(seen)
        elif seen.released_at < sent_at:
            # Else the release came while it was still busy, and which counts cannot be decided.
            seen.out_until = sent_at + _CLOCKS * request.millisToCede / 1000

    def _released(self, seen: Seen) -> None:
        seen.out_until, seen.released_at = 0.0, self._cluster.loop.now

    def died(self, name: str) -> None:
        """Forget all that a controller knew whose process is gone."""
        self._released(self._seen[name])
        self._seen[name].asked.clear()
        self._seen[name].ceding.clear()

    def wishes(self, name: str) -> None:
        seen = self._seen[name]
        early = self._cluster.loop.now < seen.out_until and not seen.asked
        self._check(not early, "P2", f"{name} asks for the lock before {seen.out_until:.1f}, until "
                                     f"when it has agreed to stand back")  # fmt: skip

    def recorded(self, record: FailoverRecord) -> None:
        """Check what a controller writes down for operators about the outcome of a takeover."""
        seen = self._seen[record.namenode]
        well = record.result is FailoverResult.SUCCEEDED and record.lock_czxid is not None
        true = not well or record.lock_czxid in seen.served
        which = f"the lock of transaction {record.lock_czxid}"
        self._check(true, "I12", f"the history says that {record.namenode} became active under "
                                 f"{which}, and it did not")  # fmt: skip

    # ---- asked by others -------------------------------------------------------------------

    def is_wished(self, name: str) -> bool:
        """Return whether a hand-over to it is under way."""
        return bool(self._seen[name].asked)

    def serves(self, name: str) -> bool:
        """Return whether its NameNode was made active under its controller's newest lock."""
        seen, node = self._seen[name], self._cluster.namenode(name)
        told = seen.told_at >= seen.lock_since and seen.obeyed >= seen.told_by
        return told and node is not None and node.state is ServiceState.ACTIVE

    def cedes(self, name: str) -> bool:
        """Return whether it is just being asked to stand back."""
        return bool(self._seen[name].ceding)

    # ---- now and then ----------------------------------------------------------------------

    def look(self) -> None:
        """Check for what must not be, and what must not last."""
        owner = self._cluster.lock_owner()
        for name, seen in self._seen.items():
            if self._cluster.controller(name) is None:
                seen.ill = seen.idle = Lasting()
                continue
            self._leaves_when_ill(name, seen, owns=name == owner)

    def _leaves_when_ill(self, name: str, seen: Seen, *, owns: bool) -> None:
        """Check that the lock of a NameNode that cannot serve becomes free."""
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
        lasts = seen.idle.seconds(now, holds=not excused and not self.serves(name))
        if lasts is not None:
            self._check(lasts < IDLE_SECONDS, "L4", f"{name} has had the lock for {lasts:.0f} s, "
                                                    f"and its NameNode serves nobody")  # fmt: skip
