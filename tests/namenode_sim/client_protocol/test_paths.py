"""The form of paths, where the quick ways say what the exact rules say, and what they lead to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.rpc.java_names import FILE_NOT_FOUND, INVALID_PATH
from namenode_sim.client_protocol.words import paths
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT, FsError
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits import ops
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.tree import components
from tests.namenode_sim.namespace.given_edits import after, directory, file, go_on, mkdir

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
    assert paths.is_valid_name(path) is valid


@given(st.lists(PARTS, max_size=6).map("/".join))
def test_the_names_along_a_path(path: str) -> None:
    assert components(path) == [part.encode() for part in path.split("/") if part]
    assert components(f"{path}/\udc80") == [*components(path), b"?"]


@pytest.mark.parametrize("name", ["a", "abc" * 2])
def test_a_path_has_a_thousand_levels_at_most(name: str) -> None:
    paths.check_length("mkdirs", f"/{name}" * paths.MAX_PATH_DEPTH)
    with pytest.raises(FsError, match="Pathname too long"):
        paths.check_length("mkdirs", f"/{name}" * (paths.MAX_PATH_DEPTH + 1))


def test_a_path_has_eight_thousand_characters_at_most() -> None:
    longest = "/a".ljust(paths.MAX_PATH_CHARACTERS, "a")
    paths.check_length("mkdirs", longest)
    with pytest.raises(FsError, match="Pathname too long"):
        paths.check_length("mkdirs", f"{longest}a")


@pytest.mark.parametrize(
    ("limit_bytes", "name", "too_long"),
    [(0, "a" * 9999, False), (1, "a", False), (1, "ä", True), (3, "abc", False), (3, "abcd", True)],
)
def test_a_name_has_a_limit_in_bytes(limit_bytes: int, name: str, too_long: bool) -> None:
    settings = Settings(max_component_bytes=limit_bytes)
    assert paths.is_too_long(name.encode(), settings) is too_long


@pytest.mark.parametrize(
    ("parent", "name", "reserved"),
    [
        ("/", b".snapshot", True), ("/d", b".snapshot", True), ("/", b".reserved", True),
        ("/d", b".reserved", False), ("/", b".inodes", False),
    ],
)  # fmt: skip
def test_what_moves_cannot_get_a_reserved_name(parent: str, name: bytes, reserved: bool) -> None:
    above = directory(after(mkdir("/d")), parent)
    if not reserved:
        paths.check_new_name(name, above, Settings())
        return
    with pytest.raises(FsError, match="reserved") as refusal:
        paths.check_new_name(name, above, Settings())
    assert refusal.value.java_class == HADOOP_ILLEGAL_ARGUMENT


def snapshotted() -> Namespace:
    """/d, whose snapshot s0 has e/f where /d now has e/n; /k and a file /g without snapshots."""
    before = [mkdir("/d"), mkdir("/d/e"), *file("/d/e/f"), mkdir("/k"), *file("/g")]
    namespace = after(before, ops.AllowSnapshot("/d"), ops.CreateSnapshot("/d", "s0", 50))
    return go_on(namespace, ops.Delete("/d/e", 60), mkdir("/d/e"), mkdir("/d/e/n"))


# Each path with the names along it and those of the inodes there; - where there is none.
ROUTES = {
    "/": ("", "/"),
    "/d/e": ("d e", "/ d e"),
    "//d//e/": ("d e", "/ d e"),
    "/d/e/f/x": ("d e f x", "/ d e - -"),
    "/g/x": ("g x", "/ g -"),
    "/g/.snapshot": ("g .snapshot", "/ g -"),
    "/k/.snapshot": ("k .snapshot", "/ k -"),
    "/k/.snapshot/s0": ("k .snapshot s0", "/ k - -"),
    "/.reserved": (".reserved", "/ -"),
    "/.reserved/.inodes": (".reserved .inodes", "/ - -"),
    "/.reserved/raw": ("", "/"),
    "/.reserved/raw/": ("", "/"),
    "/.reserved/raw/d/e": ("d e", "/ d e"),
    "/.reserved/raw/.reserved": (".reserved raw .reserved", "/ - - -"),
    "/.reserved/raw/.reserved/.inodes/16385": (".reserved .inodes 16385", "/ - - -"),
    "/.reserved/rawer/d": (".reserved rawer d", "/ - - -"),
    "/d/raw": ("d raw", "/ d -"),
    "/.reserved/d/16385": (".reserved d 16385", "/ - - -"),
    "/.reserved/.inodes/16385": ("", "/"),
    "/.reserved/.inodes/16385/d/e": ("d e", "/ d e"),
    "/d/.inodes/16385": ("d .inodes 16385", "/ d - -"),
}
SNAPSHOT_ROUTES = {
    "/.snapshot": (".snapshot", "/ -"),
    "/.snapshot/s0": (".snapshot/s0", "/ -"),
    "/d/.snapshot": ("d .snapshot", "/ d -"),
    "/d/.snapshot/s0": ("d .snapshot/s0", "/ s0 s0"),
    "/d/.snapshot/s0/e/f": ("d .snapshot/s0 e f", "/ s0 s0 e f"),
    "/d/.snapshot/s0/e/n": ("d .snapshot/s0 e n", "/ s0 s0 e -"),
    "/d/.snapshot/s0/x/y": ("d .snapshot/s0 x y", "/ s0 s0 - -"),
    "/.reserved/raw/d/.snapshot/s0": ("d .snapshot/s0", "/ s0 s0"),
    "/d/.snapshot/s1": ("d .snapshot/s1", "/ d -"),
    "/d/.snapshot/s1/e/f": ("d .snapshot/s1 e f", "/ d - - -"),
}


@pytest.mark.parametrize("path", [*ROUTES, *SNAPSHOT_ROUTES])
def test_a_path_leads_along_inodes(path: str) -> None:
    route = paths.resolve(snapshotted(), path)
    nodes = ["-" if node is None else node.name.decode() or "/" for node in route.nodes]
    names = " ".join(name.decode() for name in route.names)
    assert (names, " ".join(nodes)) == {**ROUTES, **SNAPSHOT_ROUTES}[path]
    assert route.in_snapshot is (path in SNAPSHOT_ROUTES)
    assert route.last is route.nodes[-1]
    assert route.existing == len(nodes) - nodes.count("-") - 1


@pytest.mark.parametrize(
    ("path", "parent", "parent_path", "name"),
    [
        ("/", None, "/", b""), ("/d", b"", "/", b"d"), ("/d/e", b"d", "/d", b"e"),
        ("/x/y", None, "/x", b"y"), ("/d/.snapshot/s0/e", b"s0", "/d/.snapshot/s0", b"e"),
    ],
)  # fmt: skip
def test_a_path_has_a_parent(
    path: str, parent: bytes | None, parent_path: str, name: bytes
) -> None:
    route = paths.resolve(snapshotted(), path)
    assert (route.parent_path, route.name) == (parent_path, name)
    assert (None if route.parent is None else route.parent.name) == parent
    assert route.parent is (None if parent is None else route.nodes[-2])


@pytest.mark.parametrize(
    ("of", "below", "path"),
    [
        ("/d/e", "", "/d/e"), ("/d/e", "/n", "/d/e/n"), ("/d/e", "/x/y", "/d/e/x/y"),
        ("/d/e", "/..", "/d"), ("/d/e/n", "/..", "/d/e"), ("/d", "/..", "/"), ("/", "/..", "/"),
        ("/d/e/n", "/../n", "/d/e"), ("/d", "/.snapshot/s0/e", "/d/.snapshot/s0/e"),
    ],
)  # fmt: skip
def test_a_path_may_begin_at_the_id_of_an_inode(of: str, below: str, path: str) -> None:
    """Ignore what follows ``..`` (FSDirectory.resolveDotInodesPath)."""
    namespace = snapshotted()
    route = paths.resolve(namespace, f"/.reserved/.inodes/{namespace.tree.node(of).id}{below}")
    known = paths.resolve(namespace, path)
    assert (route.path, route.names) == (path, known.names)
    assert [node and node.id for node in route.nodes] == [node and node.id for node in known.nodes]


@pytest.mark.parametrize("path", ["/", "/d", "/d/e/x", "/d/.snapshot/s0/e"])
def test_a_raw_path_is_known_by_the_path_behind_it(path: str) -> None:
    assert paths.resolve(snapshotted(), f"/.reserved/raw{path}").path == path


NOWHERE = {
    "relative": ("d/e", INVALID_PATH, "Invalid path name d/e"),
    "empty": ("", INVALID_PATH, "Invalid path name "),
    "an id of nothing": ("/.reserved/.inodes/99999", FILE_NOT_FOUND, "does not exist: /.reserved"),
    "the highest id": (f"/.reserved/.inodes/{2**63 - 1}", FILE_NOT_FOUND, "does not exist: /.res"),
    "a digit too many": (f"/.reserved/.inodes/{'1' * 20}", FILE_NOT_FOUND, "Invalid inode path"),
    "five thousand digits": (
        f"/.reserved/.inodes/{'1' * 5000}",
        FILE_NOT_FOUND,
        "Invalid inode path",
    ),
    "no digits": ("/.reserved/.inodes/x", FILE_NOT_FOUND, "Invalid inode path: /.reserved"),
    "a superscript digit": ("/.reserved/.inodes/²", FILE_NOT_FOUND, "Invalid inode path"),
}


@pytest.mark.parametrize(("path", "java_class", "message"), NOWHERE.values(), ids=NOWHERE)
def test_a_path_that_leads_nowhere(path: str, java_class: str, message: str) -> None:
    with pytest.raises(FsError, match=message) as refusal:
        paths.resolve(snapshotted(), path)
    assert refusal.value.java_class == java_class


@pytest.mark.parametrize("path", ["/", "/d", "/d/e/n"])
def test_the_route_to_an_inode_is_that_of_its_path(path: str) -> None:
    namespace = snapshotted()
    route, known = paths.route_to(namespace.tree.node(path)), paths.resolve(namespace, path)
    assert (route.path, route.names, list(map(id, route.nodes))) == (
        path, known.names, list(map(id, known.nodes)),
    )  # fmt: skip
