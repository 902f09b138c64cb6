"""Modes as chmod reads them; tests/interop holds them to Hadoop's parser."""

import pytest

from files.cli.modes import applied, shown, umask_of
from files.cli.spelling import Unfit

CASES = {
    "octal": ("750", 0o1644, 0o750),
    "octal with the sticky bit": ("1777", 0o644, 0o1777),
    "a class": ("g+w", 0o644, 0o664),
    "all without a class": ("+x", 0o644, 0o755),
    "clause after clause": ("u=rwx,g=rx,o=r", 0o000, 0o754),
    "the same class twice": ("u+r,u+w", 0o000, 0o600),
    "taken away": ("go-rwx", 0o777, 0o700),
    "the sticky bit": ("+t", 0o755, 0o1755),
    "the sticky bit of others alone": ("u+t", 0o755, 0o755),
    "set without the sticky bit": ("o=rx", 0o1777, 0o775),
    "the sticky bit taken away": ("-t", 0o1777, 0o777),
    "X without any x": ("a+X", 0o644, 0o644),
    "X with an x": ("a+X", 0o744, 0o755),
    "X is taken away as x": ("a-X", 0o755, 0o644),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mode_makes_of_a_permission(name: str) -> None:
    mode, before, after = CASES[name]
    assert f"{applied(mode, before, directory=False):o}" == f"{after:o}"


def test_x_in_capitals_is_an_x_for_directories() -> None:
    assert applied("a+X", 0o644, directory=True) == 0o755


@pytest.mark.parametrize("mode", ["", "8", "77", "2755", "17777", "u", "u+q", "g=u", "u+x,", "x"])
def test_what_is_no_mode_is_refused_with_what_is(mode: str) -> None:
    with pytest.raises(Unfit, match="755"):
        applied(mode, 0, directory=False)


def test_permissions_as_ls_shows_them() -> None:
    shapes = {0o755: "rwxr-xr-x", 0o1777: "rwxrwxrwt", 0o1750: "rwxr-x--T", 0: "---------"}
    assert {mode: shown(mode) for mode in shapes} == shapes


def test_umasks() -> None:
    texts = {"022": 0o022, "0027": 0o027, "7": 7, "u=rwx,g=rx,o=": 0o027, "u=rwx,g=,o=": 0o077}
    assert {text: umask_of(text) for text in texts} == texts
    with pytest.raises(Unfit, match="no umask"):
        umask_of("9")
