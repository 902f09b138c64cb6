"""The form of paths: the quick ways say what the exact rules say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namenode_sim.client_protocol.errors import FsError
from namenode_sim.client_protocol.paths import MAX_PATH_DEPTH, check_length, is_valid_name
from namenode_sim.namespace.tree import components

PARTS = st.sampled_from(["", ".", "..", "...", ".a", "a.", "a:b", "a", "ä", ".reserved", ".inodes"])


def exactly_valid(path: str) -> bool:
    """DFSUtil.isValidName, part by part."""
    first, *parts = path.split("/")
    if first or not parts:
        return False
    by_inode = parts[:2] == [".reserved", ".inodes"]
    for index, part in enumerate(parts):
        if part == "." or ":" in part or (part == ".." and not by_inode):
            return False
        if not part and index < len(parts) - 1:
            return False
    return True


@given(st.lists(PARTS, max_size=6).map("/".join))
def test_a_name_is_valid_as_in_hadoop(path: str) -> None:
    for each in (path, f"/{path}", f"/.reserved/.inodes/{path}"):
        assert is_valid_name(each) is exactly_valid(each), each


@given(st.lists(PARTS, max_size=6).map("/".join))
def test_the_names_along_a_path(path: str) -> None:
    assert components(path) == [part.encode() for part in path.split("/") if part]
    assert components(f"{path}/\udc80") == [*components(path), b"?"]


@pytest.mark.parametrize("name", ["a", "abc" * 2])
def test_a_path_has_a_thousand_levels_at_most(name: str) -> None:
    check_length("mkdirs", f"/{name}" * MAX_PATH_DEPTH)
    with pytest.raises(FsError, match="Pathname too long"):
        check_length("mkdirs", f"/{name}" * (MAX_PATH_DEPTH + 1))
