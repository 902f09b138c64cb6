"""What a connection needs of its server."""

from typing import Protocol, TypeVar

from ha.rpc.call_access import CallAccess
from ha.rpc.call_header import Asked
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.metrics import Meters
from ha.rpc.session import Hangup

C_contra = TypeVar("C_contra", contravariant=True)


class Owner(Protocol[C_contra]):
    """The server that a connection belongs to."""

    @property
    def budget(self) -> FrameBudget:
        """For what is half received."""

    @property
    def access(self) -> CallAccess:
        """Knows who calls."""

    def greeted(self, connection: C_contra) -> bool:
        """Return whether a connection may stay that has just named its user and protocol."""

    def is_privileged(self, connection: C_contra) -> bool:
        """Return whether reserved seats and calls are open to this connection."""

    def admit(self, connection: C_contra) -> bool:
        """Return whether one more connection may be open."""

    def forget(self, connection: C_contra) -> None:
        """Forget a connection that is closed."""

    def has_room(self, connection: C_contra) -> bool:
        """Return whether one more call may be taken; if not, ``pump`` is called once it may."""

    def take(self, connection: C_contra, asked: Asked) -> None:
        """Carry out a call; ``answer`` or ``answer_and_hang_up`` is called once.

        Unless it goes to a thread, by ``begin_thread``.
        """

    def may_begin_thread(self, connection: C_contra) -> bool:
        """Return whether a thread of its own may read a connection; ``thread_over`` ends it."""

    def carry_out_in_thread(
        self, connection: C_contra, asked: Asked, meters: Meters
    ) -> bytes | Hangup | None:
        """Carry out a call where this is called, which may block; None: it is the loop's."""

    def thread_over(self, connection: C_contra) -> None:
        """Take note that a connection is read by the loop again."""
