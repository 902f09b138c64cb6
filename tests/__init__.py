"""Tests, checks and campaigns."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""The checkout."""
PACKAGES: Final = (
    "ha", "journal", "fencing", "namenode_sim", "datanode", "files", "hadoop", "spark", "deploy",
)  # fmt: skip
"""The product's."""
TESTDATA: Final = Path(os.environ.get("NNHA_TESTDATA", ROOT.parent / "shared" / "testdata"))
"""Files that real Hadoop wrote; tests that read them are skipped where the folder is absent."""

# One fork in six next to busy threads of gRPC died in its handlers, in a measurement.  PySpark
# starts its JVM by such a fork; what is tested here never forks while it uses gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
