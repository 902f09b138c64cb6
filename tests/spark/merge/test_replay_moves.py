"""Logs by hand in which names move: the planner must ask for things where the image has them."""

from collections.abc import Callable

import pytest

from namenode_sim.edits import ops
from tests.spark.merge.script import Script


def _world() -> Script:
    """Make /a and /b with files two levels deep, and some that nothing ever touches."""
    script = Script()
    script.mkdirs("/a", "/a/x", "/a/x/y", "/b", "/b/x", "/c")
    for place in ("/a", "/a/x", "/a/x/y", "/b", "/b/x"):
        script.files(*(f"{place}/{name}" for name in ("f", "g", "é", "untouched")))
    script.open("/a/x/open")
    script.image()
    return script


def into_each_other(s: Script) -> None:
    s.rename("/a/x", "/b/from-a")
    s.rename("/b", "/a/b")
    s.files("/a/b/from-a/new")
    s.delete("/a/b/from-a/y/f", "/a/b/x/f")
    s.rename("/a/b/from-a/y", "/c/y")
    s.delete("/a/b/from-a")
    s.rename("/c/y/g", "/a/b/x/g2")


def swapped(s: Script) -> None:
    s.rename("/a", "/t")
    s.rename("/b", "/a")
    s.rename("/t", "/b")
    s.delete("/a/x/f", "/b/x/g")
    s.write(ops.SetPermissions("/b/x/y/f", 0o600))
    s.write(ops.SetPermissions("/a/x/é", 0o601))


def deleted_and_made_again(s: Script) -> None:
    s.delete("/a/x")
    s.mkdirs("/a/x", "/a/x/y")
    s.files("/a/x/f", "/a/x/y/new")
    s.delete("/a/x/g")  # gone with the first /a/x
    s.write(ops.Times("/a/x/y/new", 5, 6))
    s.delete("/a/x")
    s.files("/a/x")
    s.delete("/b/f")
    s.files("/b/f")
    s.delete("/b/f")


def inside_old_and_new_paths(s: Script) -> None:
    s.write(ops.SetPermissions("/a/x/f", 0o600))
    s.rename("/a/x", "/c/x")
    s.mkdirs("/a/x")
    s.files("/a/x/f", "/c/x/new")
    s.write(ops.SetPermissions("/a/x/f", 0o601))
    s.write(ops.SetPermissions("/c/x/f", 0o602))
    s.write(ops.SetPermissions("/c/x/y/g", 0o603))
    s.rename("/c/x/y", "/a/x/y")
    s.delete("/a/x/y/f")


def moved_out_of_the_dead(s: Script) -> None:
    s.rename("/a/x/y/f", "/c/f")
    s.rename("/a/x/open", "/c/open")
    s.rename("/a/x", "/b/x/deep")
    s.delete("/b")
    s.write(ops.SetOwner("/c/f", "nobody-yet", "nogroup-yet"))


def moved_into_the_dead(s: Script) -> None:
    s.mkdirs("/a/x/made")
    s.rename("/b", "/a/x/made/b")
    s.rename("/c", "/a/c")
    s.delete("/a")


def the_open_file_moves_with_its_directory(s: Script) -> None:
    s.rename("/a", "/z")
    s.rename("/z/x", "/c/x2")


def the_open_file_goes_with_its_directory(s: Script) -> None:
    s.delete("/a")


def in_one_directory(s: Script) -> None:
    s.rename("/a/f", "/a/zz")
    s.rename("/a/zz", "/a/f")
    s.rename("/a/g", "/a/日本")
    s.rename("/a/é", "/a/e")
    s.rename("/a/f", "/a/g")
    s.rename("/a/x", "/a/0")


def over_files_and_empty_directories(s: Script) -> None:
    s.rename("/a/f", "/b/f", overwrite=True)
    s.rename("/b/g", "/b/nothing-there", overwrite=True)
    s.rename("/a/x", "/c", overwrite=True)
    s.delete("/c/f")
    s.files("/b/é", overwrite=True)
    s.files("/b/fresh", overwrite=True)


def names_in_signed_order(s: Script) -> None:
    s.mkdirs("/n")
    s.files("/n/z", "/n/é", "/n/日", "/n/a", "/n/😀")
    s.rename("/b/é", "/n/ü")


def a_path_that_was_absent_appears(s: Script) -> None:
    s.delete("/b/no/such/file")
    s.mkdirs("/b/no", "/b/no/such")
    s.files("/b/no/such/file")
    s.rename("/b/no", "/b/yes")
    s.mkdirs("/b/no")
    s.files("/b/no/such", "/b/yes/such/other")
    s.delete("/b/yes/such/file", "/b/no/such/file")


def emptied_and_filled(s: Script) -> None:
    s.delete("/b/x/f", "/b/x/g", "/b/x/é", "/b/x/untouched")
    s.rename("/b/x", "/c/was-full")
    s.rename("/c", "/d")
    s.files("/d/was-full/again")
    s.delete("/d/was-full/again")


CASES = (
    into_each_other,
    swapped,
    deleted_and_made_again,
    inside_old_and_new_paths,
    moved_out_of_the_dead,
    moved_into_the_dead,
    the_open_file_moves_with_its_directory,
    the_open_file_goes_with_its_directory,
    in_one_directory,
    over_files_and_empty_directories,
    names_in_signed_order,
    a_path_that_was_absent_appears,
    emptied_and_filled,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_moves(case: Callable[[Script], None]) -> None:
    script = _world()
    case(script)
    assert script.check().rounds == 1


def into_a_directory(s: Script) -> None:
    s.rename_old("/a/f", "/c")
    s.write(ops.SetPermissions("/c/f", 0o600))
    s.rename_old("/b", "/c/")
    s.delete("/c/b/x/g")
    s.rename_old("/a/x/g", "/a")  # exists there: nothing happens
    s.rename_old("/a/x/y", "/")


def that_cannot_be(s: Script) -> None:
    s.rename_old("/a", "/a/x/y/a")
    s.rename_old("/a", "/a")
    s.rename_old("/", "/b")
    s.rename_old("/absent", "/c/new")
    s.rename_old("/a/f", "/b/f")  # a file: nothing happens
    s.rename_old("/a/f", "/b/f/g")
    s.rename_old("/a/f", "/nowhere/f")
    s.write(ops.SetPermissions("/a/f", 0o600))
    s.delete("/a/x/y/a")


def a_name_taken_for_new_that_was_not(s: Script) -> None:
    """Make the planner look in the wrong place for what follows each wrong guess."""
    s.rename_old("/absent", "/b/x/new")
    s.mkdirs("/a/x")  # exists
    s.write(ops.SetPermissions("/a/x/f", 0o600))
    s.rename_old("/b/x", "/a/x")  # into it
    s.delete("/a/x/x/f")
    s.rename_old("/a/f", "/a/x/f")  # exists
    s.delete("/a/x/f", "/a/f")


@pytest.mark.parametrize(
    "case",
    [into_a_directory, that_cannot_be, a_name_taken_for_new_that_was_not],
    ids=lambda case: case.__name__,
)
def test_moves_that_depend_on_what_the_image_has(case: Callable[[Script], None]) -> None:
    script = _world()
    case(script)
    assert script.check().rounds > 1
