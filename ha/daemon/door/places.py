"""Which callers have a place, and which one gives way to a newcomer.  Pure.

A caller counts in one or more crowds: all that are here, those that have proved nothing, those of
its origin.  Where a newcomer finds a crowd full, one of that crowd gives way: of those that have
shown least, the one that came first from the origin with the most.  Where none may, the newcomer is
turned away, and the others stay.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from enum import IntEnum
from itertools import groupby
from typing import Generic, TypeVar

from ha.record import dataclass, field

K = TypeVar("K", bound=Hashable)


class Standing(IntEnum):
    """What a caller has shown: the least gives way first, and none gives way to less."""

    UNPROVEN = 0
    """Nothing but where it calls from: half a handshake, half a frame, no rights here."""
    PROVEN = 1
    KEPT = 2
    """It may do what the cluster stands on: failover, edits, images, administration."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Those that share one limit; ``whose`` is an origin or a user, empty for everybody."""

    limit: str
    whose: str
    most: int

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"{self.limit}: a share of nothing keeps everybody out")


@dataclass(frozen=True, slots=True)
class Seat:
    """How one caller counts.

    ``before``: the standing up to which others give way to it, if not its own.  ``user`` divides
    an origin.
    """

    standing: Standing
    origin: str
    crowds: tuple[Crowd, ...]
    user: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict(Generic[K]):
    """What becomes of a newcomer, and of others: those that give way, each with the limit."""

    refused: str = ""
    """The limit that turned it away; empty where it is admitted."""
    gives_way: tuple[tuple[K, str], ...] = ()


_Group = tuple[Standing, str, str]
"""Standing, origin and user: of equals those of the largest origin, then user, go first."""


@dataclass(slots=True)
class Places(Generic[K]):
    """All callers of one door.

    ``since`` orders those that are alike, the lowest first; None where one must not give way, for
    it is being served.  Of equals that goes first that came first.
    """

    since: Callable[[K], float | None] = lambda _: 0.0
    _seats: dict[K, tuple[Seat, int]] = field(default_factory=dict)
    _crowds: dict[tuple[str, str], dict[_Group, dict[K, None]]] = field(default_factory=dict)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _next: int = 0

    def __len__(self) -> int:
        return len(self._seats)

    def __contains__(self, key: object) -> bool:
        return key in self._seats

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._seats))

    def take(self, key: K, seat: Seat) -> Verdict[K]:
        """Give a place to a newcomer, or another one to who has shown more.

        Those that the verdict names have left; so has the caller itself, if it is refused.
        """
        self.leave(key)
        gone: dict[K, str] = {}
        for crowd in seat.crowds:
            name = crowd.limit, crowd.whose
            left = sum((crowd.limit, crowd.whose) in _names(self._seats[one][0]) for one in gone)
            if self._counts[name] - left < crowd.most:
                continue
            first = self._first_to_go(self._crowds[name], seat, gone)
            if first is None:
                return Verdict(refused=crowd.limit)
            gone[first] = crowd.limit
        for one in gone:
            self.leave(one)
        self._seats[key] = seat, self._next
        self._next += 1
        for name in _names(seat):
            self._counts[name] += 1
            self._crowds.setdefault(name, {}).setdefault(_group(seat), {})[key] = None
        return Verdict(gives_way=tuple(gone.items()))

    def leave(self, key: K) -> None:
        """Free the place of a caller that is closed; harmless where it has none."""
        if key not in self._seats:
            return
        seat, _ = self._seats.pop(key)
        for name in _names(seat):
            groups = self._crowds[name]
            del groups[_group(seat)][key]
            self._counts[name] -= 1
            if not groups[_group(seat)]:
                del groups[_group(seat)]
            if not groups:
                del self._crowds[name], self._counts[name]

    def _first_to_go(
        self, groups: dict[_Group, dict[K, None]], seat: Seat, gone: dict[K, str]
    ) -> K | None:
        most = seat.standing if seat.before is None else seat.before
        of_origin: Counter[tuple[Standing, str]] = Counter()
        for (standing, origin, _), keys in groups.items():
            of_origin[standing, origin] += len(keys)

        def rank(group: _Group) -> tuple[int, int, int]:
            return group[0], -of_origin[group[:2]], -len(groups[group])

        ranked = sorted((group for group in groups if group[0] <= most), key=rank)
        for _, alike in groupby(ranked, key=rank):
            ready = [
                (since, self._seats[key][1], key)
                for group in alike
                for key in groups[group]
                if key not in gone and (since := self.since(key)) is not None
            ]
            if ready:
                return min(ready, key=lambda one: one[:2])[2]
        return None


def _names(seat: Seat) -> list[tuple[str, str]]:
    return [(crowd.limit, crowd.whose) for crowd in seat.crowds]


def _group(seat: Seat) -> _Group:
    return seat.standing, seat.origin, seat.user
