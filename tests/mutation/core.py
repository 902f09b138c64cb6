"""A pure core, as the mutation tool knows it."""

from dataclasses import dataclass
from typing import Final

NO_WORLDS: Final = ""


@dataclass(frozen=True, slots=True)
class Core:
    """One core.

    Attributes:
        files: from the root.
        tests: files and folders of tests; those that need a real ZooKeeper are left out, and those
            that do not run a changed line as well.
        worlds: the package of the simulation that runs it, or NO_WORLDS.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    worlds: str
