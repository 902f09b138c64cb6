"""Patterns, modes and sizes of ``nnha fs``, held to Hadoop's own classes."""

import pytest
from py4j.protocol import Py4JJavaError

from files.cli import modes
from files.cli.forms import size_text
from files.cli.spelling import Unfit, alternatives, matcher
from tests.files.cli.patterns import BAD, EXPANDED, MATCHED, MODES, SIZES
from tests.interop.hadoop_server import Hadoop

pytestmark = pytest.mark.interop


def test_patterns_stand_for_what_they_do_in_hadoop(hadoop: Hadoop) -> None:
    fs = hadoop.hadoop.fs
    for pattern in EXPANDED:
        if "\\" not in pattern:  # it drops backslashes before the prefix, too
            assert list(fs.GlobExpander.expand(pattern)) == alternatives(pattern)
    for pattern, (fits, others) in MATCHED.items():
        theirs, ours = fs.GlobPattern(pattern), matcher(pattern)
        for name in fits + others:
            assert theirs.matches(name) is bool(ours.fullmatch(name)), (pattern, name)
    for pattern in BAD:
        with pytest.raises(Py4JJavaError):
            fs.GlobPattern(pattern)


def test_modes_make_what_they_do_in_hadoop(hadoop: Hadoop) -> None:
    fs = hadoop.hadoop.fs
    path = fs.Path("/a")
    for mode in MODES:
        try:
            modes.applied(mode, 0, directory=False)
            is_one = True
        except Unfit:
            is_one = False
        try:
            parser = fs.permission.ChmodParser(mode)
        except Py4JJavaError:
            parser = None
        assert is_one is (parser is not None), mode
        if not is_one:
            continue
        for before in (0, 0o644, 0o755, 0o1777, 0o1640, 0o111):
            for directory in (False, True):
                permission = fs.permission.FsPermission(before)
                status = fs.FileStatus(0, directory, 1, 1, 0, 0, permission, "o", "g", path)
                theirs = parser.applyNewPermission(status)
                ours = modes.applied(mode, before, directory=directory)
                assert f"{theirs:o}" == f"{ours:o}", (mode, f"{before:o}", directory)
                shown = fs.permission.FsPermission(before).toString()
                assert shown == modes.shown(before)


def test_sizes_are_written_as_in_hadoop(hadoop: Hadoop) -> None:
    text = getattr(hadoop.hadoop.util, "StringUtils$TraditionalBinaryPrefix").long2String
    assert {size: text(size, "", 1) for size in SIZES} == {
        size: size_text(size, human=True) for size in SIZES
    }
