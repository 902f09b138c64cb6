"""Run a scan over ranges whose boundaries are guesses, until every one is proved.

The first range of a stretch begins at a true boundary.  A scan that begins at one and ends exactly
where the next range begins proves that range's beginning
(docs/reference/checkpoint.md#splitting-a-section).
"""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import structlog

from ha.record import dataclass, replace
from namenode_sim.image.errors import ImageError
from spark.engine.model import Engine
from spark.image.ranges import ImageRange

log = structlog.get_logger()

T = TypeVar("T")
Span = tuple[str, int, int]


class Scanned(Protocol):
    """What the result of a scan must contain."""

    @property
    def ended(self) -> int:
        """Where in the file the last message ended that begins in the range."""

    @property
    def broken(self) -> str:
        """What is wrong in the range, if its beginning is true; empty if nothing is."""


S = TypeVar("S", bound=Scanned)


@dataclass(frozen=True, slots=True)
class Proved(Generic[S]):
    """A range and what its scan found."""

    item: ImageRange
    result: S


def prove(
    engine: Engine,
    stage: str,
    scan: Callable[[T], S],
    ranges: Sequence[ImageRange],
    task: Callable[[ImageRange], T],
    told: Callable[[int, S], None] = lambda _number, _result: None,
) -> list[Proved[S]]:
    """Scan all ranges; those with a wrong boundary again from the right one.

    The callback is called with each scan's result, also those that turn out to be wrong guesses.

    Args:
        engine: runs the scans.
        stage: its name.
        scan: a task's function.
        ranges: in the order of the file.
        task: makes the task for a range.

    Raises:
        ImageError: if the section is damaged; names file and offset.
        TaskFailed: if a task failed.
    """
    wanted = list(ranges)
    results: dict[Span, S] = {}
    while True:
        missing = [item for item in wanted if _span(item) not in results]
        for number, result in engine.run(stage, scan, [task(item) for item in missing]):
            results[_span(missing[number])] = result
            told(number, result)
        again = _correct(wanted, results)
        if again is None:
            return [Proved(item, results[_span(item)]) for item in wanted]
        log.info("image.boundary_corrected", stage=stage, path=wanted[0].path)
        wanted = again


def _span(item: ImageRange) -> Span:
    return item.path, item.offset, item.length


def _correct(wanted: Sequence[ImageRange], results: dict[Span, S]) -> list[ImageRange] | None:
    """Return the ranges with the first wrong boundary put right; None if all are proved."""
    for index, item in enumerate(wanted):
        result = results[_span(item)]
        if result.broken:
            raise ImageError(result.broken)
        if result.ended == item.end:
            continue
        if item.last:
            raise ImageError(
                f"{item.where(item.length)}: it ends inside a message, which would end at byte "
                f"{result.ended}; take another copy of this image"
            )
        return [*wanted[:index], *_move_boundary(item, result.ended, wanted[index + 1 :])]
    return None


def _move_boundary(item: ImageRange, boundary: int, rest: Sequence[ImageRange]) -> list[ImageRange]:
    """``item`` up to the boundary, and what of the others lies behind it."""
    fixed = [replace(item, length=boundary - item.offset)]
    inside = True
    for other in rest:
        if inside and boundary < other.end:
            fixed.append(replace(other, offset=boundary, length=other.end - boundary))
            inside = False
        elif not inside:
            fixed.append(other)
        elif other.last:
            # The boundary lies at or behind the end of the stretch: the item is its last now.
            fixed[0] = replace(fixed[0], last=True, length=other.end - item.offset)
            inside = False
    return fixed
