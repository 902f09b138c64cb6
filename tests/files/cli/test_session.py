"""How a command about files ends, and what it shows of a long copy."""

import pytest

from files import errors
from files.cli.copies import progress_line
from files.cli.session import Failed, NoAnswer, Session
from files.cli.spelling import NoSuchPath, Unfit
from files.cli.tree import Tree
from files.namenodes import Namenodes
from ha.conf.configuration import Configuration
from ha.console.cluster_options import ClusterCommand
from ha.rpc import java_names as java
from ha.rpc.errors import RemoteFault


def session(output: str = "json") -> Session:
    place = ClusterCommand(Configuration({}, {}), "ns1", output)
    return Session("fs rm", place, Tree(Namenodes([]), "bob", "ns1"))


def refused(java_class: str) -> errors.Refused:
    return errors.refusal(RemoteFault(java_class, "why\n\tat a stack"))


def fail(one: Session, path: str, error: Exception) -> None:
    with one.trying(path):
        raise error


ENDS = {
    "nothing there": (NoSuchPath(), 3, "NO_SUCH_PATH"),
    "our own refusal": (Unfit("why"), 3, "UNFIT_PATH"),
    "rights": (refused(java.ACCESS_CONTROL), 7, "ACCESS_DENIED"),
    "gone since": (refused(java.FILE_NOT_FOUND), 3, "NO_SUCH_PATH"),
    "taken": (refused(java.FILE_ALREADY_EXISTS), 3, "PATH_EXISTS"),
    "a quota": (refused(java.NAMESPACE_QUOTA_EXCEEDED), 3, "QUOTA_EXCEEDED"),
    "safe mode": (refused(java.SAFE_MODE_EXCEPTION), 3, "IN_SAFE_MODE"),
    "anything else": (refused("a.b.OddException"), 3, "NAMENODE_REFUSED"),
    "striped": (errors.Unsupported("why"), 3, "UNFIT_PATH"),
    "no DataNode": (errors.Unwritable("why"), 4, "COPY_FAILED"),
    "half of a copy": (Failed("why"), 4, "COPY_FAILED"),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_error_has_a_code_for_the_shell_and_for_programs(name: str) -> None:
    error, code, word = ENDS[name]
    one = session()
    fail(one, "/a", error)
    assert (one.exit_code(), one.failures[0]["code"]) == (code, word)
    assert "why" in str(one.failures[0]["message"]) or name == "nothing there"


@pytest.mark.parametrize(
    ("error", "code"), [(errors.Unreachable("why"), 6), (errors.OutcomeUnknown("why"), 5)]
)
def test_without_an_answer_no_further_path_is_tried(error: Exception, code: int) -> None:
    one = session()
    with pytest.raises(NoAnswer), one.trying("/a"):
        fail(one, "/a/b", error)
    assert (one.exit_code(), len(one.failures)) == (code, 1)


def test_a_command_that_only_reads_leaves_nothing_unknown() -> None:
    one = session()
    one.command = "fs get"
    with pytest.raises(NoAnswer):
        fail(one, "/a", errors.OutcomeUnknown("why"))
    assert (one.exit_code(), one.failures[0]["code"]) == (6, "NO_ANSWER")


def test_a_part_that_was_done_is_no_refusal() -> None:
    one = session()
    one.did("/a")
    assert one.exit_code() == 0
    fail(one, "/b", NoSuchPath())
    assert one.exit_code() == 4
    with pytest.raises(NoAnswer):
        fail(one, "/c", errors.OutcomeUnknown("why"))
    assert one.exit_code() == 5


def test_two_kinds_of_failure_are_a_failure() -> None:
    one = session()
    for error in (NoSuchPath(), refused(java.ACCESS_CONTROL)):
        fail(one, "/a", error)
    assert one.exit_code() == 4


def test_people_read_what_was_found_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    one = session("table")
    fail(one, "/a\x1b[2J", refused(java.ACCESS_CONTROL))
    told = capsys.readouterr()
    assert told.err == ("nnha fs rm: /a?[2J: bob may not: why\n→ nnha fs ls -d shows the rights\n")


def test_the_line_of_a_long_copy() -> None:
    assert progress_line("a", 1 << 20, 3 << 20, 2.0) == "a  1 M of 3 M, 512 K/s, 0:00:04 left"
    assert progress_line("a", 1 << 20, None, 1.0) == "a  1 M, 1 M/s"
    assert progress_line("a", 0, 5, 0.0) == "a  0 of 5, 0/s"
    assert progress_line("a", 1, 10_801, 1.0) == "a  1 of 10.5 K, 1/s, 3:00:00 left"
