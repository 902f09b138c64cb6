"""A buffer that is used again gives the bytes that came, in order, whatever its sizes were."""

from hypothesis import given
from hypothesis import strategies as st

from hadoop.wire.receive_buffer import ReceiveBuffer

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.integers(1, 20)),
        st.tuples(st.just("read"), st.integers(1, 20)),
        st.tuples(st.just("room"), st.integers(1, 30)),
    ),
    max_size=60,
)


@given(STEPS)
def test_bytes_come_out_as_they_went_in(steps: list[tuple[str, int]]) -> None:
    buffer, expected, next_byte = ReceiveBuffer(8), b"", 0
    assert len(buffer.free()) == buffer.capacity == 8
    for step, count in steps:
        match step:
            case "come":
                free = buffer.free()
                count = min(count, len(free))
                new = bytes((next_byte + place) % 256 for place in range(count))
                next_byte += count
                free[:count] = new
                buffer.filled(count)
                expected += new
            case "read":
                count = min(count, len(buffer))
                assert bytes(buffer.peek(count)) == expected[:count]
                buffer.skip(count)
                expected = expected[count:]
            case _:
                capacity = max(count, len(buffer))
                buffer.make_room(capacity)
                assert buffer.capacity == capacity
                assert len(buffer.free()) == capacity - len(buffer)
        assert len(buffer) == len(expected)
        assert buffer.is_full == (len(buffer.free()) == 0)
    assert bytes(buffer.peek(len(buffer))) == expected


def test_room_of_the_same_size_is_made_in_the_same_memory() -> None:
    buffer = ReceiveBuffer(8)
    memory = buffer.free().obj
    buffer.make_room(8)
    assert buffer.free().obj is memory
    buffer.make_room(9)
    assert buffer.free().obj is not memory
