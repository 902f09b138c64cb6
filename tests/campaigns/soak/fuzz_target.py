"""One decoder that fuzzing feeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.hostile.shapes import Shape


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder to be fed.

    Attributes:
        name: as on the command line.
        run: feeds some bytes; raises only ``errors``.
        errors: what it may raise.
        seeds: sound inputs to begin with.
        shape: their form; ``prefix`` bytes stand before it.
    """

    name: str
    run: Callable[[bytes], None]
    errors: tuple[type[Exception], ...]
    seeds: Callable[[], Sequence[bytes]]
    shape: Shape = Shape.BYTES
    prefix: int = 0
