"""Real files, and a process that ends at a chosen one of the operations that change them."""

from typing import Any, Final

from journal.storage.files import RealFiles

_CHANGING: Final = frozenset(
    {"create", "open_in_place", "truncate", "sync_file", "sync_folder", "rename", "remove", "link"}
)


class Crash(BaseException):
    """The process is gone; no code of ours may run any more."""


class CrashingFiles:
    """Ends at the ``at``-th changing operation, before its effect."""

    def __init__(self, at: int) -> None:
        self._left = at
        self._real = RealFiles()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any operation of real files
        if name in _CHANGING:
            self._left -= 1
            if self._left <= 0:
                raise Crash
        return getattr(self._real, name)
