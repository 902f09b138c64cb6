"""Lines of a start that were kept back: the reason of a failure first, and no line is lost."""

import io

import pytest

from ha.daemon import stderr
from ha.daemon.stderr import START_LINES, LossyStream, StartLines


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> tuple[LossyStream, io.StringIO, StartLines]:
    lines, written = StartLines(), io.StringIO()
    monkeypatch.setattr(stderr, "START_LINES", lines)
    return LossyStream(written), written, lines


Streams = tuple[LossyStream, io.StringIO, StartLines]


def test_the_reason_comes_before_what_was_kept_back(stream: Streams) -> None:
    log, written, lines = stream
    lines.hold()
    log.write("begun\n")
    assert written.getvalue() == ""
    with lines.after():
        log.write("why\n")
    log.write("ended\n")
    assert written.getvalue() == "why\nbegun\nended\n"


def test_what_was_kept_back_is_written_though_the_reason_cannot_be_logged(stream: Streams) -> None:
    log, written, lines = stream
    lines.hold()
    log.write("begun\n")

    def fail() -> None:
        with lines.after():
            raise KeyError("no such field")

    with pytest.raises(KeyError):
        fail()
    assert written.getvalue() == "begun\n"


def test_released_twice_each_line_is_written_once(stream: Streams) -> None:
    log, written, lines = stream
    lines.hold()
    log.write("begun\n")
    lines.release()
    lines.release()
    assert written.getvalue() == "begun\n"


def test_a_process_that_is_no_daemon_keeps_nothing_back() -> None:
    written = io.StringIO()
    LossyStream(written).write("at once\n")
    assert written.getvalue() == "at once\n"
    assert not START_LINES.keep(LossyStream(written), "x")
