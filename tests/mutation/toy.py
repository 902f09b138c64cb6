"""A small core that slips are planted into, to see that they are."""

import asyncio
from dataclasses import dataclass, replace

LIMIT = 3
TABLE = {"a": 1, "b": 2}


@dataclass(frozen=True, slots=True)
class Toy:
    """A counter."""

    count: int = 0
    last: str = ""

    @property
    def full(self) -> bool:
        """Whether it takes no more."""
        return self.count >= LIMIT


class Dial:
    """A number that somebody sets."""

    def __init__(self) -> None:
        self._number = 0

    @property
    def number(self) -> int:
        return self._number

    @number.setter
    def number(self, number: int) -> None:
        self._number = number


def dialled(number: int) -> int:
    """Return what a dial shows that was set."""
    dial = Dial()
    dial.number = number
    return dial.number


async def turned(dial: Dial) -> int:
    """Return what a dial shows after a turn of the loop, in which it is set to 5."""
    asyncio.get_running_loop().call_soon(setattr, dial, "number", 5)
    await asyncio.sleep(0)
    return dial.number


def step(toy: Toy, word: str) -> tuple[Toy, tuple[str, ...]]:
    """Count a word; one that is not known, or comes when it is full, changes nothing."""
    if toy.full or word not in TABLE:
        return toy, ()
    count = min(toy.count + TABLE[word], 100)
    after = replace(toy, count=count, last=word)
    return after, ("told", "full") if after.full else ("told",)


def spin(turns: int) -> int:
    """Count down."""
    while turns > 0:
        turns = turns - 1
    return turns
