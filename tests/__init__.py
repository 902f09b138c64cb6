"""Tests, checks and campaigns."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""The checkout."""
TESTDATA: Final = Path(os.environ.get("NNHA_TESTDATA", ROOT.parent / "shared" / "testdata"))
"""Files that real Hadoop wrote; tests that read them are skipped where the folder is absent."""
