"""Hadoop's patterns; tests/interop holds the same tables to Hadoop's own classes."""

import pytest

from files.cli.spelling import Unfit, alternatives, is_pattern, matcher, quoted, unquoted
from tests.files.cli.patterns import BAD, EXPANDED, MATCHED


@pytest.mark.parametrize("pattern", EXPANDED)
def test_braces_with_a_slash_are_several_paths(pattern: str) -> None:
    assert alternatives(pattern) == EXPANDED[pattern]


@pytest.mark.parametrize("pattern", MATCHED)
def test_a_pattern_matches_whole_names(pattern: str) -> None:
    fits, others = MATCHED[pattern]
    found = matcher(pattern)
    assert [name for name in fits + others if found.fullmatch(name)] == fits


@pytest.mark.parametrize("pattern", BAD)
def test_what_is_open_or_too_short_is_refused(pattern: str) -> None:
    with pytest.raises(Unfit, match=r"not closed|backslash"):
        matcher(pattern)


def test_a_name_is_no_pattern() -> None:
    plain = ["a", "a.b", "a,b", "a}b", "a]b", "a!b", "a^b", r"\*", r"\{a,b\}", "$(a)|+"]
    assert [one for one in plain if is_pattern(one)] == []
    assert [unquoted(one) for one in (r"\*", r"a\\b", r"\{a")] == ["*", r"a\b", "{a"]


def test_a_quoted_name_matches_itself_alone() -> None:
    for name in ("a", "*", "[a]?", "{a,b}", "a\\b", "é^!"):
        assert matcher(quoted(name)).fullmatch(name)
        assert not is_pattern(quoted(name))
        assert unquoted(quoted(name)) == name


def test_capitals_count_only_where_they_shall() -> None:
    assert matcher("A*", any_case=True).fullmatch("ab")
    assert not matcher("A*").fullmatch("ab")
