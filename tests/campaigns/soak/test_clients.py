"""What suites of other clients print is counted."""

import pytest

from tests.campaigns.soak.clients import Counted, again, of_bats, of_go

GO = """\
{"Action":"start","Package":"hdfs"}
{"Action":"run","Package":"hdfs","Test":"TestA"}
{"Action":"output","Package":"hdfs","Test":"TestA","Output":"--- PASS"}
{"Action":"pass","Package":"hdfs","Test":"TestA","Elapsed":1}
{"Action":"skip","Package":"hdfs","Test":"TestB","Elapsed":0}
go: downloading something
{"Action":"pass","Package":"hdfs","Elapsed":3}
"""
FAILED = '{"Action":"fail","Package":"hdfs","Test":"TestC","Elapsed":1}\n'
BROKEN = '{"Action":"fail","Package":"hdfs/cmd","Elapsed":0}\n'
BATS = """\
1..3
ok 1 cat one
ok 2 df # skip no df here
"""
NOT_OK = "not ok 3 ls -l\n# why\n"


@pytest.mark.parametrize(
    ("counted", "expected", "well"),
    [
        (of_go(GO.splitlines()), Counted(1, 1, ()), True),
        (of_go((GO + FAILED).splitlines()), Counted(1, 1, ("TestC",)), False),
        (of_go((GO + BROKEN).splitlines()), Counted(1, 1, ("hdfs/cmd",)), False),
        (of_go([]), Counted(0, 0, ()), False),
        (of_bats(BATS.splitlines()), Counted(1, 1, ()), True),
        (
            of_bats((BATS + "not ok 3 ls -l\n# why\n").splitlines()),
            Counted(1, 1, ("ls -l",)),
            False,
        ),
        (of_bats(["1..3"]), Counted(0, 0, ()), False),
        (again(Counted(8, 2, ("TestC",)), Counted(1, 0, ())), Counted(9, 2, ()), True),
        (
            again(Counted(8, 2, ("TestC",)), Counted(0, 0, ("TestC",))),
            Counted(8, 2, ("TestC",)),
            False,
        ),
    ],
    ids=[
        "go",
        "a test fails",
        "a package fails",
        "no go",
        "bats",
        "a script fails",
        "no bats",
        "passes at last",
        "fails twice",
    ],
)
def test_a_suite_is_well_only_if_some_pass_and_none_fails(
    counted: Counted, expected: Counted, *, well: bool
) -> None:
    assert counted == expected
    assert counted.well is well
