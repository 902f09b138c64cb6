"""Long work on the event loop, a little at a time.

See docs/reference/datanodes.md#long-work.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

SLICE_SECONDS: Final = 0.005
SLICE_ITEMS: Final = 2_000


async def in_slices(steps: Iterator[int], goes_on: Callable[[], bool]) -> bool:
    """Take steps, each of which yields how many items it dealt with; False if work had to end.

    After five milliseconds or two thousand items others get the loop; then ``goes_on`` is asked
    whether there is still a reason for the work.
    """
    clock = asyncio.get_running_loop().time
    began, items = clock(), 0
    if not goes_on():
        return False
    for count in steps:
        items += count
        if items < SLICE_ITEMS and clock() < began + SLICE_SECONDS:
            continue
        await asyncio.sleep(0)
        if not goes_on():
            return False
        began, items = clock(), 0
    return True
