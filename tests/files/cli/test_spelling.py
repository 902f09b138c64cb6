"""How people spell paths, and how results are spelt after them."""

import pytest

from files.cli.spelling import Unfit, child, spelt

CASES = {
    "absolute": ("/a/b", "/a/b", "/a/b"),
    "the root": ("/", "/", "/"),
    "slashes and dots count for nothing": ("//a/./b//", "/a/b", "/a/b"),
    "two dots lead up": ("/a/../b", "/b", "/b"),
    "relative to the home directory": ("a b", "/user/bob/a b", "a b"),
    "the home directory": (".", "/user/bob", "."),
    "out of the home directory": ("../al", "/user/al", "../al"),
    "the root, from home": ("../..", "/", "../.."),
    "with the nameservice": ("hdfs://ns1/a", "/a", "hdfs://ns1/a"),
    "the root of the nameservice": ("hdfs://ns1", "/", "hdfs://ns1/"),
    "in capitals": ("HDFS://ns1/a", "/a", "hdfs://ns1/a"),
    "without an authority": ("hdfs:///a", "/a", "hdfs:///a"),
    "with one slash": ("hdfs:/a", "/a", "hdfs:///a"),
    "a percent sign is one": ("/a%20b", "/a%20b", "/a%20b"),
    "a colon without a slash behind it": ("a:b", "/user/bob/a:b", "a:b"),
    "a new line": ("/a\nb", "/a\nb", "/a\nb"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_path_means_and_is_shown_again(name: str) -> None:
    text, absolute, shown = CASES[name]
    spelling = spelt(text, "bob", "ns1")
    assert spelling.absolute(spelling.pattern) == absolute
    assert spelling.shown(absolute) == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "/ is the root"),
        ("hdfs://ns2/a", "about ns1, and not about ns2"),
        ("hdfs://nn1:8020/a", "not about nn1:8020"),
        ("s3a://bucket/a", "not s3a:"),
        ("file:///a", "not file:"),
        ("/a\udcff", "is UTF-8"),
    ],
)
def test_what_is_not_here_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(Unfit, match=said):
        spelt(text, "bob", "ns1")


@pytest.mark.parametrize("text", ["/..", "/a/../../b", "../../.."])
def test_no_path_leads_above_the_root(text: str) -> None:
    spelling = spelt(text, "bob", "ns1")
    with pytest.raises(Unfit, match="above the root"):
        spelling.absolute(spelling.pattern)


def test_children() -> None:
    assert [child(path, "x") for path in ("/a", "/", ".", "..")] == ["/a/x", "/x", "x", "../x"]
