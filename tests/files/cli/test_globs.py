"""Hadoop's patterns; tests/interop holds the same tables to Hadoop's own classes."""

import pytest

from files.cli.globs import alternatives, matcher, parts_of, pattern_of, quoted, unquoted
from files.cli.spelling import BadPath
from tests.files.cli.patterns import BAD, EXPANDED, MATCHED


@pytest.mark.parametrize("pattern", EXPANDED)
def test_braces_with_a_slash_are_several_paths(pattern: str) -> None:
    assert alternatives(pattern) == EXPANDED[pattern]


@pytest.mark.parametrize("pattern", MATCHED)
def test_a_pattern_matches_whole_names(pattern: str) -> None:
    fits, others = MATCHED[pattern]
    found = matcher(pattern, any_case=False)
    assert [name for name in fits + others if found.fullmatch(name)] == fits


@pytest.mark.parametrize("pattern", BAD)
def test_what_is_open_or_too_short_is_refused(pattern: str) -> None:
    with pytest.raises(BadPath, match=r"not closed|backslash"):
        matcher(pattern, any_case=False)


def test_a_name_is_no_pattern() -> None:
    plain = ["a", "a.b", "a,b", "a}b", "a]b", "a!b", "a^b", r"\*", r"\{a,b\}", "$(a)|+"]
    assert [one for one in plain if pattern_of(one)] == []
    assert [unquoted(one) for one in (r"\*", r"a\\b", r"\{a")] == ["*", r"a\b", "{a"]
    assert parts_of("/a//b/") == ["a", "b"]


def test_a_quoted_name_matches_itself_alone() -> None:
    for name in ("a", "*", "[a]?", "{a,b}", "a\\b", "é^!"):
        assert matcher(quoted(name), any_case=False).fullmatch(name)
        assert pattern_of(quoted(name)) is None
        assert unquoted(quoted(name)) == name


def test_capitals_count_only_where_they_shall() -> None:
    assert matcher("A*", any_case=True).fullmatch("ab")
    assert not matcher("A*", any_case=False).fullmatch("ab")


def test_a_pattern_cannot_stand_for_any_number_of_paths() -> None:
    with pytest.raises(BadPath, match="stands for more than"):
        alternatives("{a/b,c}" * 20)
