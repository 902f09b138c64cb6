"""An image and its edits as tables: for Spark (`register`), and as Parquet files."""

import os
import tempfile
from pathlib import Path
from typing import Any, Final

from spark.engine.code_archive import pack_code, root_of_code

_ARCHIVE: Final = "nnha-code"
"""The same name as in `spark.engine.session`."""


def register(session: Any) -> None:  # noqa: ANN401 - a SparkSession; pyspark has no types for us
    """Let ``session.read.format("fsimage")`` and ``format("edits")`` find our data sources.

    Executors import our modules by name.  On a local master they take those that this process
    runs; elsewhere our code is sent to them once, and they need nnha's dependencies installed.
    """
    # A program that only exports needs no Spark.
    from spark.tables.edits_source import EditsSource
    from spark.tables.fsimage_source import FsImageSource

    context = session.sparkContext
    if context.master.startswith("local") and not context.master.startswith("local-cluster"):
        known = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        root = str(root_of_code())
        if root not in known:
            context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, *known)))
    elif not any(name.startswith(_ARCHIVE) for name in context._python_includes):
        # Spark takes no second file of one name; its starter may have sent our code.
        folder = Path(tempfile.mkdtemp(prefix="nnha-code-"))
        context.addPyFile(str(pack_code(folder / f"{_ARCHIVE}.zip")))
    session.dataSource.register(FsImageSource)
    session.dataSource.register(EditsSource)
