"""What tables and scripts say of racks."""

import pytest

from namenode_sim.datanodes.membership.rack_names import depth, rack_named, racks_printed, table_of


@pytest.mark.parametrize(
    ("text", "rack"),
    [
        ("/a", "/a"), ("/a/b", "/a/b"), ("/a/", "/a"), ("/a//", "/a"), ("a", None), ("", None),
        ("/", None), ("//a", None), ("/a\x07", None), ("/" + "a" * 255, "/" + "a" * 255),
        ("/" + "a" * 256, None),
    ],
)  # fmt: skip
def test_names_of_racks(text: str, rack: str | None) -> None:
    assert rack_named(text) == rack


def test_levels_are_counted() -> None:
    assert [depth(rack) for rack in ("/a", "/a/b", "/a/b/c")] == [1, 2, 3]


def test_a_table_has_two_columns_and_other_lines_are_passed_over() -> None:
    text = "# racks\n10.0.0.1 /a/\n  DN2\t/b \n\nalone\nthree /c d\n10.0.0.4 c\n10.0.0.1 /z\n"
    assert table_of(text) == ({"10.0.0.1": "/z", "dn2": "/b"}, 3)


@pytest.mark.parametrize(
    ("output", "found"),
    [
        pytest.param("/a /b\n", {"x": "/a", "y": "/b"}, id="one for each"),
        pytest.param("/a/\n/b", {"x": "/a", "y": "/b"}, id="on lines"),
        pytest.param("/a", "it printed 1 racks, 2 were asked for", id="too few"),
        pytest.param("", "it printed 0 racks, 2 were asked for", id="none"),
        pytest.param("/a /b /c", "it printed 3 racks, 2 were asked for", id="too many"),
        pytest.param("/a b", "it printed 'b', which is no rack: a rack begins with /", id="no /"),
    ],
)
def test_what_a_script_prints(output: str, found: object) -> None:
    assert racks_printed(output, ["x", "y"]) == found
