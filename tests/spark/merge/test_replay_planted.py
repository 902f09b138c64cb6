"""Planted bugs: each rule of the planner and the difference is needed, and its loss is noticed."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.values import Permission
from namenode_sim.image.strings import StringNumbers, Strings
from spark.merge import delta as delta_module
from spark.merge.model import Delta
from spark.merge.plan import planner as plan_module
from spark.merge.sparse import Sparse, SparseChildren
from spark.merge.trie import BaseTrie
from tests.spark.merge import memory
from tests.spark.merge.script import Script

Patch = pytest.MonkeyPatch
_Planner = plan_module._Planner
NOBODY = np.zeros(0, np.int64)


def _script() -> Script:
    s = Script()
    s.mkdirs("/quiet", who=Permission("carol", "others", 0o700))
    s.mkdirs("/a", "/a/x", "/a/x/y", "/b", "/b/z", "/c", "/e", "/old")
    s.files("/a/f", "/a/x/f", "/a/x/keep", "/a/x/y/f", "/b/f", "/b/g", "/b/z/f", "/b/z/untouched")
    s.files("/c/f", "/c/g", "/e/f")
    s.open("/a/x/open")
    s.image()
    s.files("/c/new", "/b/f", overwrite=True)
    s.delete("/e/f")
    s.write(ops.SetPermissions("/a/x/f", 0o600))
    s.rename("/a/x", "/b/x")
    s.mkdirs("/a/x", "/d")
    s.files("/a/x/f", "/a/x/keep", "/d/z", "/d/é", "/d/a")
    s.delete("/b/x/f")
    s.write(ops.SetPermissions("/b/x/keep", 0o600))
    s.delete("/a/x/f")
    s.rename("/b/x/y", "/c/y")
    s.rename("/b/z/f", "/c/zf")
    s.delete("/b/z", "/c/g")
    s.rename_old("/c/f", "/old")
    s.delete("/old/f")
    return s


def _change(patch: Patch, change: Callable[[Delta], Mapping[str, object]]) -> None:
    real = delta_module.delta_of

    def changed(sparse: Sparse) -> Delta:
        found = real(sparse)
        return replace(found, **change(found))  # type: ignore[arg-type]

    patch.setattr(memory, "delta_of", changed)


def expand_into_what_is_decided(patch: Patch) -> None:
    _change(patch, lambda _: {"materialised": NOBODY})


def no_expansion(patch: Patch) -> None:
    _change(patch, lambda _: {"tombstones": NOBODY})


def children_that_left_stay(patch: Patch) -> None:
    _change(patch, lambda _: {"removed": {}})


def unsigned_order(patch: Patch) -> None:
    patch.setattr(
        delta_module, "in_order", lambda children: [children[name] for name in sorted(children)]
    )


def renames_are_ignored(patch: Patch) -> None:
    patch.setattr(_Planner, "_rename", lambda self, op: (self._find(op.src), self._find(op.dst)))


def no_mtime_for_where_a_name_was(patch: Patch) -> None:
    """Walk through the directory that a node leaves, and no more."""

    def take(self: "_Planner", directory: int, name: bytes) -> int:
        node = self._need(self._at(directory, name))
        self._put(directory, name, plan_module.GONE)
        return node

    patch.setattr(_Planner, "_take", take)


def paths_of_directories_are_never_forgotten(patch: Patch) -> None:
    def put(self: "_Planner", directory: int, name: bytes, node: int) -> None:
        self.overlays.setdefault(directory, {})[name] = node

    patch.setattr(_Planner, "_put", put)


def open_files_are_not_asked_about(patch: Patch) -> None:
    patch.setattr(_Planner, "ask_for_open_files", lambda _: None)


def leaves_are_only_walked_through(patch: Patch) -> None:
    patch.setattr(_Planner, "_need", lambda _, node: node)


def guesses_are_believed(patch: Patch) -> None:
    patch.setattr("spark.merge.plan.rounds.first_wrong_guess", lambda _plan, _looked: None)


def directories_do_not_gain(patch: Patch) -> None:
    patch.setattr(_Planner, "_gains", lambda self, directory: self._need(directory))


def string_ids_begin_anew(patch: Patch) -> None:
    def seeded(_cls: type, _table: Strings) -> StringNumbers:
        return StringNumbers(-65)

    patch.setattr(StringNumbers, "seeded", classmethod(seeded))


def what_was_not_asked_is_taken_for_absent(patch: Patch) -> None:
    """Without the guard the other holes would go unnoticed; so this is planted with one."""
    patch.setattr(SparseChildren, "get", lambda self, name, _=None: self._held.get(name))
    renames_are_ignored(patch)


def one_trie_node_for_all_names(patch: Patch) -> None:
    real = BaseTrie.child
    patch.setattr(BaseTrie, "child", lambda self, parent, name: real(self, parent, name[:1]))


PLANTED = (
    expand_into_what_is_decided,
    no_expansion,
    children_that_left_stay,
    unsigned_order,
    renames_are_ignored,
    no_mtime_for_where_a_name_was,
    paths_of_directories_are_never_forgotten,
    open_files_are_not_asked_about,
    leaves_are_only_walked_through,
    guesses_are_believed,
    directories_do_not_gain,
    string_ids_begin_anew,
    what_was_not_asked_is_taken_for_absent,
    one_trie_node_for_all_names,
)


def test_without_a_bug_the_log_is_merged() -> None:
    _script().check()


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_noticed(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    script = _script()
    plant(monkeypatch)
    with pytest.raises(Exception) as noticed:  # noqa: PT011 - any check that speaks up will do
        script.check()
    assert noticed.type is not NotImplementedError
