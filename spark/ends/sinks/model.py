"""What a sink does with a merged image, and what may become of it."""

from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Protocol

from ha.record import dataclass
from spark.ends.sources.model import ReportStep, Staged


class SinkRefused(Exception):
    """The image is not wanted there, for good; nothing was changed.  The message says why."""


class SinkFailed(Exception):
    """The image could not be published this time; nothing half-done is visible."""


class SinkOutcome(StrEnum):
    """What became of an image."""

    PUBLISHED = "published"
    ALREADY_THERE = "already there"


@dataclass(frozen=True, slots=True)
class Published:
    """Where the image is now, in words for people."""

    outcome: SinkOutcome
    where: str


class Sink(Protocol):
    """A place for images."""

    def folder(self, work: Path) -> Path:
        """Return where the merge must put its image: its final place, or one to publish from."""
        ...

    def publish(self, image: Path, staged: Staged, tell: ReportStep) -> Published:
        """Publish an image that lies in ``folder``, with its digest next to it.

        The callback is called with what is done.

        Args:
            image: ``fsimage_M``.
            staged: what it was made of.

        Raises:
            SinkRefused: if something newer or something else is there.
            SinkFailed: if it could not be done; it may be tried again.
            ImageError, OSError: if our own copy cannot be read.
        """
        ...


class UploadVerdict(Enum):
    """What became of an image that was offered to all NameNodes."""

    TAKEN = auto()
    NOT_NEEDED = auto()
    """The active has as much already, or takes another image now, or has taken one lately."""
    SUPERSEDED = auto()
    """The active writes under another epoch than the image was planned under."""
    NO_ACTIVE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class DirectorySink:
    """The directory that the user named."""

    directory: Path

    def folder(self, work: Path) -> Path:
        del work
        return self.directory

    def publish(self, image: Path, staged: Staged, tell: ReportStep) -> Published:
        """Return at once, as nothing is left to do."""
        del staged, tell
        return Published(SinkOutcome.PUBLISHED, str(image))
