"""The tree of places asked about."""

from spark.merge.trie import NEED, ROOT, BaseTrie


def test_a_name_is_added_once_and_after_its_parent() -> None:
    trie = BaseTrie()
    a = trie.child(ROOT, b"a")
    b = trie.child(a, b"b")
    assert trie.child(ROOT, b"a") == a
    assert trie.child(b, b"a") not in {a, b}
    assert all(parent < node for node, parent in enumerate(trie.parents))
    assert trie.path(b) == b"/a/b"
    assert trie.path(ROOT) == b"/"


def test_levels_hold_every_node_once_at_its_depth() -> None:
    trie = BaseTrie()
    for path in ([b"a", b"b", b"c"], [b"d"], [b"a", b"e"]):
        node = ROOT
        for name in path:
            node = trie.child(node, name)
    levels = [sorted(trie.path(node) for node in level) for level in trie.levels()]
    assert levels == [[b"/"], [b"/a", b"/d"], [b"/a/b", b"/a/e"], [b"/a/b/c"]]
    assert trie.flags[ROOT] == NEED
    assert trie.is_interior(ROOT)
    assert not trie.is_interior(trie.child(ROOT, b"d"))
