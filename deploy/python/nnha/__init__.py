"""The one public name of an installed nnha.

The repository's packages (``ha``, ``journal``, ``spark`` ...) have names that others use, too.  A
wheel keeps them in ``nnha/_tree``, where they overwrite no others; ``activate`` puts that folder on
the path of this process.  A checkout has no such folder: its own root is on the path already.
"""

import sys
from pathlib import Path

_TREE = Path(__file__).parent / "_tree"


def activate(*, first: bool = False) -> None:
    """Let this process import nnha's packages.

    ``first``: before all others of the same names, as nnha's own commands need it.  Otherwise they
    come last, so that a program that has packages of these names keeps its own.
    """
    tree = str(_TREE)
    if not _TREE.is_dir() or tree in sys.path:
        return
    sys.path.insert(0 if first else len(sys.path), tree)
