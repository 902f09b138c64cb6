"""Load what an idle daemon does without, when it is first needed and beside the event loop."""

import asyncio
import importlib
import sys


async def load_late(module: str) -> None:
    """Import a module in a thread while the loop goes on; the caller imports it after that."""
    if module not in sys.modules:
        await asyncio.to_thread(importlib.import_module, module)
