"""For spark-submit: ``nnha checkpoint merge --engine spark`` on the Spark that submits it.

spark-submit --master spark://host:7077 .../spark/submit.py --image ... --edits ... --out ...
"""

import sys


def main() -> None:
    """Merge with the arguments of ``nnha checkpoint merge``; its exit codes, too."""
    # spark-submit puts this file's own folder first, where our packages look like top-level ones.
    from pathlib import Path

    here = Path(__file__).parent
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here.resolve()]
    sys.path.insert(0, str(here.parent))
    from spark.merge.command import merge_command

    merge_command(["--engine", "spark", *sys.argv[1:]])


if __name__ == "__main__":
    main()
