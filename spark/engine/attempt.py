"""Names that no other attempt of the same task can have."""

import os
import uuid


def attempt_name(stem: str) -> str:
    """``stem`` with this process and a random part: a task that runs twice writes two files.

    The driver reads only the names that tasks returned, so a file of an attempt that was lost
    stays unseen until the work directory goes.
    """
    return f"{stem}.{os.getpid()}-{uuid.uuid4().hex[:12]}"
