"""A JournalNode on a disk whose every flush of a segment takes 5 ms longer."""

import time

from ha.cli.main import main
from journal.storage import files

FLUSH_SECONDS = 0.005

if __name__ == "__main__":
    quick = files._RealFile.sync

    def slow(self: files._RealFile) -> None:
        """Wait as a disk without a cache of its own would."""
        time.sleep(FLUSH_SECONDS)
        quick(self)

    files._RealFile.sync = slow  # type: ignore[method-assign]
    main()
