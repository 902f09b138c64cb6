"""A large heap is kept in huge pages, and only what is in use."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from namenode_sim.huge_pages import keep_in_huge_pages, nearly_full, whole_pieces
from tests import needs

SIZE = 0x200000


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("7f0000000000-7f0000400000 rw-p 00000000 00:00 0 ", [0x7F0000000000, 0x7F0000200000]),
        ("7f0000001000-7f0000500000 rw-p 00000000 00:00 0 ", [0x7F0000200000]),
        ("7f0000001000-7f00003ff000 rw-p 00000000 00:00 0 ", []),
        ("00400000-00600000 rw-p 00000000 00:00 0          [heap]", [0x400000]),
        ("00400000-00600000 rw-p 00000000 00:00 0          [stack]", []),
        ("00400000-00600000 r--p 00000000 00:00 0 ", []),
        ("00400000-00600000 rw-s 00000000 00:00 0 ", []),
        ("00400000-00600000 rw-p 00000000 fe:00 17         /usr/lib/a library.so", []),
        ("00400000-00600000 rw-s 00000000 00:01 17         /dev/zero (deleted)", []),
    ],
)
def test_which_memory_may_be_in_huge_pages(line: str, pieces: list[int]) -> None:
    assert list(whole_pieces([line], SIZE)) == pieces


@pytest.mark.parametrize(("there", "of", "full"), [
    (512, 512, True), (480, 512, True), (479, 512, False), (1, 512, False), (0, 0, False),
])  # fmt: skip
def test_only_what_is_in_use_is_collapsed(there: int, of: int, full: bool) -> None:
    present, absent = bytes(7) + b"\x81", b"\xff" * 7 + b"\x41"
    assert nearly_full(present * there + absent * (of - there)) is full


@pytest.mark.parametrize("enabled", ["always madvise [never]", None])
def test_where_they_are_forbidden_it_ends(tmp_path: Path, enabled: str | None) -> None:
    if enabled is not None:
        (tmp_path / "enabled").write_text(enabled)
        (tmp_path / "hpage_pmd_size").write_text(f"{SIZE}\n")
    asyncio.run(asyncio.wait_for(keep_in_huge_pages(tmp_path), 10))


@needs.HUGE_PAGES.mark
def test_a_heap_is_collapsed_and_keeps_its_bytes_and_its_size() -> None:
    """Next to 96 MB in use there are 32 MB of which every eighth page is, as in a stack."""
    said = f"""
import asyncio, mmap, random
from pathlib import Path
from namenode_sim.huge_pages import sweep

def figure(name, file):
    lines = Path("/proc/self/" + file).read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

made = random.Random(1).randbytes(300)
kept = [bytes(made[:200 + n % 100]) for n in range(400_000)]
sparse = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(sparse), 8 * 4096):
    sparse[at] = 7
before = figure("VmRSS", "status")
asyncio.run(sweep({SIZE}))
after, huge = figure("VmRSS", "status"), figure("AnonHugePages", "smaps_rollup")
assert huge > 64_000, huge
assert after < before + 8_000, (before, after)
assert all(one == made[:200 + n % 100] for n, one in enumerate(kept))
"""
    subprocess.run([sys.executable, "-c", said], check=True, timeout=60)
