"""What a campaign must know of nnha and of Hadoop, whose daemons it strikes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class System(Protocol):
    """The daemons of one maker, by the process names of ``hosts``; all have the same ZooKeeper."""

    name: str
    settle_seconds: float
    """How long it may take to be well again after a round; longer is a finding."""
    datanodes: tuple[str, ...]
    """Those that run; none where no client writes files."""
    tls: Path | None
    """Below it each has a folder with a certificate, once all is configured; None: none has."""

    def configure(self, directory: Path) -> None:
        """Write what its daemons read."""

    def command(self, process: str) -> Sequence[str]:
        """Return the command line of a JournalNode, NameNode or ZKFC."""

    def formatting(self) -> Mapping[str, Sequence[str]]:
        """Return the commands that create journal, nn1's image and znode, under JournalNodes."""

    def learn(self, journalnode: str) -> Sequence[str] | None:
        """Return the commands that create journal, nn1's image and znode; JournalNodes run."""

    def unsettled(self) -> str:
        """Return why the cluster is not as well as it can be; empty where it is."""

    def switchover(self, active: str, target: str) -> Sequence[str]:
        """Return an operator's command line that makes ``target`` active."""

    def operate(self, *arguments: str) -> Sequence[str]:
        """Another command line of an operator: pause, resume, drain."""

    def lacking(self) -> Mapping[str, str]:
        """Kinds of faults that it cannot be struck with, and why."""

    def verification(self) -> Sequence[str] | None:
        """Return a command that ends with 0 if all copies of the journal agree; None for none."""

    def active(self) -> str | None:
        """Return the NameNode that calls itself active, if just one does."""
