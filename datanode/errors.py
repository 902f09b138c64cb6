"""Why a DataNode cannot do what it was asked to.

DataNodeError
├── ReplicaRefused    the replica is not in the state that the operation needs
│   └── RecoveryInProgress   another recovery of the block is newer
├── ReplicaMissing    there is no such replica here
├── ChecksumMismatch, MalformedTransfer   see ``hadoop.wire.errors``
├── NoRoom            no volume takes a block of that size
├── VolumeFailed      a volume's disk refused; nothing more is kept there
├── UnusableVolume    a directory cannot be used at start
├── WrongNamespace    directories and NameNode belong to different clusters
└── OtherNamespace    a NameNode is of another namespace than the one that we have joined
"""

from pathlib import Path

from hadoop.wire.errors import DataNodeError


class ReplicaRefused(DataNodeError):
    """The replica is not in the state that the operation needs."""


class RecoveryInProgress(ReplicaRefused):
    """Another recovery of the block is newer than the one that asks."""


class ReplicaMissing(DataNodeError):
    """No replica of the block is here."""


class NoRoom(DataNodeError):
    """No volume takes a block of that size."""


class VolumeFailed(DataNodeError):
    """The disk of a volume refused an operation."""

    def __init__(self, directory: Path, problem: OSError) -> None:
        super().__init__(f"{directory} failed: {problem}")


class UnusableVolume(DataNodeError):
    """A data directory cannot be used."""

    def __init__(self, directory: Path, found: str, advice: str) -> None:
        super().__init__(f"{directory} {found}. {advice}")


class WrongNamespace(DataNodeError):
    """Data directories hold blocks of another cluster than the NameNode's."""


class OtherNamespace(DataNodeError):
    """A NameNode is of another namespace than the one that this DataNode has joined."""
