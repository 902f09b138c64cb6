"""The packets that wait for their acknowledgement, and whose fault an error is."""

import pytest

from files.window import Sent, Window, failed_node
from hadoop.proto.data_transfer_pb2 import Status
from hadoop.wire.errors import MalformedTransfer

OK, ERROR, SUM, RESTART = Status.SUCCESS, Status.ERROR, Status.ERROR_CHECKSUM, Status.OOB_RESTART

REPLIES = {
    "all have it": ([OK, OK, OK], None),
    "none says anything": ([], None),
    "the only one": ([ERROR], 0),
    "the last": ([OK, OK, ERROR], 2),
    "the middle; the one behind it was not heard": ([OK, ERROR], 1),
    "the first lost the second, and says so of both": ([OK, ERROR, ERROR], 2),
    "one found bad bytes": ([OK, OK, SUM], 2),
    "the first has gone wrong alone": ([ERROR, OK, OK], 0),
    "one restarts": ([OK, RESTART], 1),
}


@pytest.mark.parametrize("name", REPLIES)
def test_the_failed_node(name: str) -> None:
    replies, expected = REPLIES[name]
    assert failed_node(replies) == expected


def test_acknowledgements_come_in_order() -> None:
    window = Window(100, 100)
    for number, end in enumerate((150, 200, 200)):
        window.add(Sent(number, end, b""))
    assert (window.acked, window.sent) == (100, 200)
    window.acknowledge(0)
    assert (window.acked, window.sent, len(window.waiting)) == (150, 200, 2)
    for wrong in (0, 2, 3):
        with pytest.raises(MalformedTransfer, match=f"packet {wrong}"):
            window.acknowledge(wrong)
    assert window.acked == 150
    window.acknowledge(1)
    window.acknowledge(2)
    with pytest.raises(MalformedTransfer):
        window.acknowledge(3)
    assert (window.acked, window.sent) == (200, 200)


def test_what_is_sent_again_was_sent_before() -> None:
    window = Window(0, 500)
    window.add(Sent(3, 400, b""))
    assert window.sent == 500
