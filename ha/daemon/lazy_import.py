"""Load what an idle daemon does without, when it is first needed and off the event loop."""

import asyncio
import importlib
import threading

_loaded: set[str] = set()
_loading = threading.Lock()


async def load_late(module: str) -> None:
    """Import a module in a thread while the loop goes on; the caller imports it after that.

    One at a time: two threads that import parts of one package get halves of it.  That a module is
    known to Python does not say that it is whole.
    """
    if module not in _loaded:
        await asyncio.to_thread(load, module)


def load(module: str) -> None:
    """Import a module at once, for a process that will need it anyway."""
    with _loading:
        importlib.import_module(module)
        _loaded.add(module)
