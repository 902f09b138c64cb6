"""How much a peer may ask of us: sizes in bytes, waits in seconds."""

from ha.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcLimits:
    """The limits of one server; each has a name, so that a log line can say which was met.

    A call beyond ``max_calls*`` is not refused but left unread: the peer's sends fill up and it
    waits.  Everything else that is exceeded closes the connection.
    """

    max_frame_bytes: int = 64 * 1024 * 1024
    """Java's ipc.maximum.data.length had this default until 3.x doubled it."""

    max_handshake_frame_bytes: int = 64 * 1024
    """The limit for frames before the connection context, when the caller is not known yet."""

    max_connections: int = 1024
    kept_share: int = 16
    """One in this number is kept: for protocols other than ClientProtocol, and for peers that have
    not said what they are for.  Of ``max_calls`` as well: for those protocols.
    """

    max_unproven: int = 128
    max_unproven_of_address: int = 16
    """Connections of unnamed callers that nothing else has proved either.  They are counted at each
    sweep: a peer that has just come may have named itself already.
    """

    max_of_user: int = 256
    max_of_address: int = 128
    """Connections of clients that have said who calls."""

    max_calls_per_connection: int = 256
    max_calls: int = 4096
    """Over all connections, answered or not: a handler outlives the connection it came from."""

    share_of_user: int = 4
    """One user may have this part of ``max_calls`` while somebody with less than that waits."""

    outgoing_pause_bytes: int = 1024 * 1024
    """With this much unsent, no further call is taken from that connection."""

    max_outgoing_bytes: int = 128 * 1024 * 1024
    """With this much unsent, the connection is aborted."""

    handshake_seconds: float = 10.0
    frame_seconds: float = 60.0
    """From a frame's first byte to its last."""

    idle_seconds: float = 600.0
    """Without a call, a ping or anything else.  Java clients hang up after 10 s themselves."""

    stalled_write_seconds: float = 60.0
    """How long a peer may leave its answers unread, once ``outgoing_pause_bytes`` wait."""

    stop_seconds: float = 2.0
    """How long ``stop`` lets running handlers finish before it cancels them."""

    def __post_init__(self) -> None:
        if self.max_handshake_frame_bytes > self.max_frame_bytes:
            raise ValueError("max_handshake_frame_bytes must not exceed max_frame_bytes")
        if self.max_calls_per_connection > self.max_calls:
            raise ValueError("max_calls_per_connection must not exceed max_calls")
        if self.outgoing_pause_bytes > self.max_outgoing_bytes:
            raise ValueError("outgoing_pause_bytes must not exceed max_outgoing_bytes")
        if min(self.max_connections, self.max_calls_per_connection) < 1:
            raise ValueError("a server that takes no connection or no call serves nobody")
        shares = (self.max_unproven, self.max_unproven_of_address, self.max_of_user,
                  self.max_of_address, self.share_of_user, self.kept_share)  # fmt: skip
        if min(shares) < 1:
            raise ValueError("a share of nothing keeps everybody out")

    @property
    def kept_connections(self) -> int:
        """How many connections no client gets."""
        return self.max_connections // self.kept_share

    @property
    def calls_of_clients(self) -> int:
        """How many calls ClientProtocol may have: a crowd of them must not hold up a failover."""
        return self.max_calls - self.max_calls // self.kept_share

    @property
    def calls_of_user(self) -> int:
        """How many calls one user may have while others wait."""
        return max(1, self.max_calls // self.share_of_user)

    @property
    def sweep_seconds(self) -> float:
        """How often the waits are looked at: a quarter of the shortest, at most one second."""
        waits = (
            self.handshake_seconds,
            self.frame_seconds,
            self.idle_seconds,
            self.stalled_write_seconds,
        )
        return min(1.0, *(seconds / 4 for seconds in waits))


DEFAULT_LIMITS = RpcLimits()
