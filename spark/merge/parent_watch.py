"""A merge ends with the service that began it, also where that was killed and can end nothing."""

import os
import signal
import threading
from typing import Final

_STDIN: Final = 0


def end_with_stdin_s_writer() -> None:
    """Kill this process once no process holds the other end of standard input any more.

    Where it leads a process group, a JVM and Python workers go with it.  What lies in the work
    directory the next merge removes.
    """
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    while os.read(_STDIN, 4096):
        pass  # what comes in means nothing
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
