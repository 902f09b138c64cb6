"""What the NameNodes together may say to an image.  Pure."""

from enum import Enum, auto


class UploadVerdict(Enum):
    """What became of an image that was offered to all NameNodes."""

    TAKEN = auto()
    NOT_NEEDED = auto()
    """The active has as much already, or takes another image now, or has taken one lately."""
    SUPERSEDED = auto()
    """The active writes under another epoch than the image was planned under."""
    NO_ACTIVE = auto()
    FAILED = auto()
