"""A daemon's garbage collector leaves what was there at the start alone."""

import gc

from ha.daemon.process import NEW_OBJECTS, calm_collector


def test_what_exists_is_frozen_and_collections_are_rare() -> None:
    before = gc.get_threshold()
    try:
        calm_collector()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] == NEW_OBJECTS
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() >= 1
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
