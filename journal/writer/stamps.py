"""What each request of a writer to one node begins with."""

from journal.links.outgoing import Edits, Outgoing
from journal.links.remote_node import RemoteNode
from journal.model import NO_EPOCH, Epoch
from journal.proto import journal_pb2 as pb
from journal.writer.window import Window


class Stamps:
    """The writer's epoch, what it knows to be committed, and serials that rise with each request.

    A serial is taken when the request is sent, as the node takes them in no other order.
    """

    def __init__(self, remote: RemoteNode, window: Window) -> None:
        self.epoch = NO_EPOCH
        self._remote = remote
        self._window = window
        self._serial = 0

    def info(self) -> pb.RequestInfo:
        """Return a header for the request that is sent next."""
        return self._remote.request_info(
            Epoch(self.epoch), self._take_serial(), self._window.committed or None
        )

    def outgoing(self, edits: Edits | None) -> Outgoing:
        """Return the batch that is sent next or, without edits, the heartbeat."""
        return self._remote.outgoing(
            Epoch(self.epoch), self._take_serial(), self._window.committed or None, edits
        )

    def _take_serial(self) -> int:
        self._serial += 1
        return self._serial - 1
