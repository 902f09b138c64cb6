"""The form of paths: the quick ways say what the exact rules say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namenode_sim.client_protocol.errors import FsError
from namenode_sim.client_protocol.paths import MAX_PATH_DEPTH, check_length, is_valid_name
from namenode_sim.namespace.tree import components

PARTS = st.sampled_from(["", ".", "..", "...", ".a", "a.", "a:b", "a", "ä", ".reserved", ".inodes"])


@pytest.mark.parametrize(
    ("path", "valid"),
    [
        ("/", True), ("//", True), ("/a", True), ("/a/b/", True), ("/a//", True), ("/.a/...", True),
        ("", False), ("a", False), ("/a//b", False), ("//a", False), ("/a/./b", False),
        ("/a/..", False), ("/a:b", False), ("/..a/b..", True),
        ("/.reserved/.inodes/7/..", True), ("/.reserved/.inodes/..", False),
        ("/.reserved/.inodes//..", False), ("/.reserved/x/7/..", False),
    ],
)  # fmt: skip
def test_a_name_is_valid_as_in_hadoop(path: str, valid: bool) -> None:
    """tests/interop/test_path_names.py asks Hadoop's own."""
    assert is_valid_name(path) is valid


@given(st.lists(PARTS, max_size=6).map("/".join))
def test_the_names_along_a_path(path: str) -> None:
    assert components(path) == [part.encode() for part in path.split("/") if part]
    assert components(f"{path}/\udc80") == [*components(path), b"?"]


@pytest.mark.parametrize("name", ["a", "abc" * 2])
def test_a_path_has_a_thousand_levels_at_most(name: str) -> None:
    check_length("mkdirs", f"/{name}" * MAX_PATH_DEPTH)
    with pytest.raises(FsError, match="Pathname too long"):
        check_length("mkdirs", f"/{name}" * (MAX_PATH_DEPTH + 1))
