"""What a task found out about the image or the edits, as the error that it is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from namenode_sim.image.errors import ImageError
from spark.engine.model import TaskFailed
from spark.merge.errors import EditsDoNotBelong, NeedsWholeNamespace

_VERDICTS: Final[dict[str, Callable[[str], Exception]]] = {
    error.__name__: error for error in (ImageError, EditsDoNotBelong, NeedsWholeNamespace)
}


@contextmanager
def verdicts() -> Iterator[None]:
    """Errors of tasks come as text and the name of their class: those of ours are raised again."""
    try:
        yield
    except TaskFailed as failed:
        error = _VERDICTS.get(failed.kind)
        if error is None:
            raise
        raise error(failed.cause) from failed
