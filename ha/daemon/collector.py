"""The garbage collector of a daemon: what was there at the start is never looked through again."""

import gc
from typing import Final

NEW_OBJECTS: Final = 20_000
"""Python looks for cycles after 700 new objects, which is several times for each batch of edits."""


def calm_collector() -> None:
    """Leave everything that exists now out of collections, and collect less often.

    The modules of a daemon are some hundred thousand objects that never go away.  Each full
    collection walks over all of them: 15-30 ms in which nothing is answered.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, 10)
