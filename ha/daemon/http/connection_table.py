"""Which HTTP connections there are, and which give way when there are too many.

A probe must be answered while somebody keeps hundreds of half requests open, from its own address
as well: a supervisor would kill a daemon that is well.  A newcomer therefore always finds a place
as long as one is taken by somebody who has not asked yet.  Requests that take long have places of
their own, by what their caller may do: images and segments give way to no one else's.
"""

from dataclasses import replace
from typing import Final, Protocol

from ha.daemon.door.door import Door, DoorLimits
from ha.daemon.door.origin import Origin, Share
from ha.daemon.door.places import Standing

ASKING: Final = DoorLimits(most=128, unproven=112, unproven_of_origin=32, of_origin=32)
"""Connections whose request is not whole yet, or whose page is not gone.  More would leave no
descriptors, and a daemon could not reach its peers either.
"""
LONG: Final = DoorLimits(most=192, unproven=128, unproven_of_origin=32, of_origin=32)
"""Connections that aiohttp serves, and whose requests may take long."""


class Asking(Protocol):
    """A connection of which the request is not whole yet, or the answer not gone."""

    @property
    def origin(self) -> Origin:
        """Where it comes from."""

    def __hash__(self) -> int: ...

    def abort(self) -> None:
        """Close it, whatever was said."""


class HandedOn(Protocol):
    """A connection that aiohttp has; a transport of asyncio."""

    def __hash__(self) -> int: ...

    def is_closing(self) -> bool: ...

    def abort(self) -> None: ...


class HttpConnectionTable:
    """The connections of one endpoint."""

    def __init__(self, asking: DoorLimits = ASKING, long: DoorLimits = LONG) -> None:
        self._asking_limits, self._long_limits = asking, long
        self._asking: Door[Asking] = Door("http", lambda one, _: one.abort())
        self._long: Door[HandedOn] = Door("http_long", lambda one, _: one.abort())

    @property
    def asking(self) -> tuple[Asking, ...]:
        """Those that were not handed on."""
        return tuple(self._asking)

    def admit(self, newcomer: Asking) -> bool:
        """Admit one more, for which the oldest that has not asked yet may give way; else False."""
        seat = self._asking_limits.seat(newcomer.origin, Standing.UNPROVEN)
        return self._asking.take(newcomer, seat)

    def leave(self, connection: Asking) -> None:
        """Forget a connection that is closed or handed on."""
        self._asking.leave(connection)

    def hand_on(self, connection: Asking, transport: HandedOn, standing: Standing) -> bool:
        """Let aiohttp have a connection; False where too many are with it already.

        Only those of a lower standing give way: an answer under way is worth more than the next.
        """
        self.leave(connection)
        for one in self._long:  # aiohttp does not report which of them it has closed
            if one.is_closing():
                self._long.leave(one)
        origin = connection.origin
        if origin.share is Share.UNLIMITED:
            standing = Standing.UNPROVEN  # it has no share, so it must not take those of others
        seat = self._long_limits.seat(origin, standing)
        return self._long.take(transport, replace(seat, before=seat.standing - 1))
