"""A local directory: the merge itself puts the image there, its digest first and by rename."""

from dataclasses import dataclass
from pathlib import Path

from spark.ends.sinks.model import Published, SinkOutcome
from spark.ends.sources.model import Staged, TellSource


@dataclass(frozen=True, slots=True)
class DirectorySink:
    """The directory that the user named."""

    directory: Path

    def folder(self, work: Path) -> Path:
        del work
        return self.directory

    def publish(self, image: Path, staged: Staged, tell: TellSource) -> Published:
        """Return at once, as nothing is left to do."""
        del staged, tell
        return Published(SinkOutcome.PUBLISHED, str(image))
