"""Checksums against slow and obvious ones."""

import zlib

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hadoop.blocks import Checksum, ChecksumType
from hadoop.wire.checksums import checksums_of, composite, verify
from hadoop.wire.errors import ChecksumMismatch

CRC32 = Checksum(ChecksumType.CRC32)
CRC32C = Checksum(ChecksumType.CRC32C)
LENGTHS = st.one_of(st.integers(0, 3000), st.sampled_from([511, 512, 513, 1024, 8192, 8193]))


def bit_by_bit(data: bytes) -> int:
    """Compute CRC-32C as its definition says."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def chunks(data: bytes, step: int) -> list[bytes]:
    return [data[at : at + step] for at in range(0, len(data), step)]


def test_the_check_value_of_the_standard() -> None:
    assert checksums_of(b"123456789", CRC32C).hex() == "e3069283"
    assert checksums_of(b"123456789", CRC32).hex() == "cbf43926"


def test_crc32c_is_not_made_in_python() -> None:
    """Exclude the wheel's fallback with a warning: a write of a second would take a minute."""
    assert google_crc32c.implementation == "c"


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), LENGTHS, st.sampled_from([1, 7, 511, 512, 513, 1100]))
def test_crc32c_is_that_of_the_definition(random: object, length: int, step: int) -> None:
    data = random.randbytes(length)  # type: ignore[attr-defined]
    expected = b"".join(bit_by_bit(chunk).to_bytes(4, "big") for chunk in chunks(data, step))
    assert checksums_of(data, Checksum(ChecksumType.CRC32C, step)) == expected


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), LENGTHS)
def test_a_composite_is_the_checksum_of_the_whole(random: object, length: int) -> None:
    data = random.randbytes(length)  # type: ignore[attr-defined]
    whole = zlib.crc32(data).to_bytes(4, "big") if data else bytes(4)
    assert composite(checksums_of(data, CRC32), length, CRC32) == whole
    one_chunk = checksums_of(data, Checksum(ChecksumType.CRC32C, 1 << 20)) or bytes(4)
    assert composite(checksums_of(data, CRC32C), length, CRC32C) == one_chunk


@pytest.mark.parametrize("chunks", range(1, 18))
@pytest.mark.parametrize("last", [1, 3, 4])
def test_a_composite_of_so_many_chunks(chunks: int, last: int) -> None:
    fours = Checksum(ChecksumType.CRC32, 4)
    data = bytes(range(1, 4 * chunks - 3 + last))
    whole = zlib.crc32(data).to_bytes(4, "big")
    assert composite(checksums_of(data, fours), len(data), fours) == whole


@given(st.integers(0, 1999), st.integers(0, 7))
def test_any_flipped_bit_is_found_in_its_chunk(at: int, bit: int) -> None:
    data = bytearray(b"nnha" * 500)
    sums = checksums_of(data, CRC32C)
    verify(data, sums, CRC32C, at=4096, what="b")
    data[at] ^= 1 << bit
    with pytest.raises(ChecksumMismatch) as found:
        verify(data, sums, CRC32C, at=4096, what="b")
    assert found.value.offset == 4096 + at // 512 * 512


def test_no_checksums_fit_everything() -> None:
    null = Checksum(ChecksumType.NULL)
    assert checksums_of(b"abc", null) == b""
    verify(b"abc", b"", null, at=0, what="b")
