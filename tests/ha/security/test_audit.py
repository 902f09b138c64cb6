"""The audit log: one line an entry whatever was said, bounded, and never waited for."""

import json
import os
import threading
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ha.conf.keys.security import AuditFormat, Mode
from ha.daemon.logs import configure_logging
from ha.security.access_control import AccessControl
from ha.security.audit import AuditLog
from ha.security.audit_rate import (
    MOST_CALLERS,
    MOST_GRANTED,
    MOST_OF_A_CALLER,
    QUIET_SECONDS,
    RefusalRate,
    Share,
)
from ha.security.audit_text import Entry, Outcome, escape, hadoop_line, json_line
from ha.security.caller import ALL_ROLES, Caller, Method, Role
from ha.security.peer_uid import End
from ha.security.rights import RIGHTS

EVIL = "bob\n2026-11-22 allowed=true\tugi=root\x1b[2J\u202egnp\u2028\\"
SHOWN = "bob\\n2026-11-22 allowed=true\\tugi=root\\x1b[2J\\u202egnp\\u2028\\\\"
MALLORY = Caller(EVIL, Method.PEER_UID, frozenset({Role.CLIENT}), "127.0.0.1:41234", 1234)
REFUSED = Entry(
    Outcome.REFUSED, MALLORY, "rpc", "ZKFCProtocol", "cedeActive", "zkfc@127.0.0.1:8019", EVIL,
    EVIL, 3,
)  # fmt: skip


def test_hadoops_line() -> None:
    line = hadoop_line(REFUSED, "2026-11-22 11:03:07,211")
    assert line == (
        f"2026-11-22 11:03:07,211 INFO FSNamesystem.audit: allowed=false\tugi={SHOWN} "
        "(auth:PEER_UID)\tip=/127.0.0.1\tcmd=cedeActive\tsrc=zkfc@127.0.0.1:8019\tdst=null\t"
        f"perm=null\tproto=rpc\tcallerContext={SHOWN}\treason={SHOWN}\talike=3"
    )


def test_the_line_as_json() -> None:
    line = json_line(REFUSED, "2026-11-22T11:03:07.211Z")
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {
        "timestamp": "2026-11-22T11:03:07.211Z", "event": "audit", "allowed": False,
        "outcome": "refused", "user": SHOWN, "uid": 1234, "method": "peer-uid", "roles": ["client"],
        "address": "127.0.0.1:41234", "proto": "rpc", "face": "ZKFCProtocol",
        "action": "cedeActive", "target": "zkfc@127.0.0.1:8019", "reason": SHOWN,
        "context": SHOWN, "alike": 3,
    }  # fmt: skip


@pytest.mark.parametrize("form", ["json", "text"])
def test_one_line_in_a_log_too(form: str, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logging("x", form=form)
    AuditLog(AuditFormat.BOTH, None).write(REFUSED)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_any_character_is_printable_afterwards() -> None:
    for code in (*range(0x300), 0x200B, 0x202E, 0x2066, 0xD800, 0xE000, 0x1F600, 0xE0001):
        assert escape(chr(code)).isprintable()


def test_the_first_refusal_then_one_a_minute_with_the_number_of_others() -> None:
    rate = RefusalRate()
    times = (0.0, 1.0, 2.0, QUIET_SECONDS, QUIET_SECONDS + 1)
    assert [rate.admit("bob", "a", now) for now in times] == [0, None, None, 2, None]
    assert rate.admit("bob", "b", 2.0) == 0, "another kind has a line of its own"
    assert rate.admit("eve", "a", 2.0) == 0, "as has another caller"


def test_a_flood_of_kinds_is_bounded_and_counted_by_caller() -> None:
    rate = RefusalRate()
    written = sum(rate.admit("bob", number, 1.0) is not None for number in range(1000))
    assert written == MOST_OF_A_CALLER
    assert rate.admit("bob", "transition", 1.0, Share.CONTROL) == 0, "noise hides no control action"
    assert rate.admit("eve", 5, 1.0) == 0
    assert rate.is_silent
    assert rate.take_unsaid(1.0) == 1000 - written
    assert rate.take_unsaid(1.0) == 0
    assert not rate.is_silent


def test_a_minute_is_over_when_it_ends() -> None:
    rate = RefusalRate()
    for number in range(MOST_OF_A_CALLER):
        rate.admit("bob", number, 1.0)
    assert rate.admit("bob", "late", QUIET_SECONDS + 0.9) is None
    assert rate.admit("bob", "next", QUIET_SECONDS + 1.0) == 0


def test_callers_of_many_addresses_share_what_is_left() -> None:
    rate = RefusalRate()
    asked = [(caller, kind) for caller in range(MOST_CALLERS * 4) for kind in range(3)]
    written = [caller for caller, kind in asked if rate.admit(caller, kind, 1.0) is not None]
    assert len(written) == MOST_CALLERS * 3 + 3
    late = QUIET_SECONDS + 1.0
    assert rate.admit("new", "a", late) == 0, "those before have made room"
    assert rate.take_unsaid(late) == len(asked) - len(written)


def test_what_is_alike_is_said_once_in_the_end() -> None:
    rate = RefusalRate()
    for _ in range(5):
        rate.admit("bob", "a", 0.0)
    assert rate.take_unsaid(QUIET_SECONDS - 1.0) == 0, "its next line may count them"
    assert rate.take_unsaid(QUIET_SECONDS) == 4
    assert rate.admit("bob", "a", QUIET_SECONDS) == 0


def test_room_is_made_of_callers_whose_time_is_over_and_their_counts_are_kept() -> None:
    rate = RefusalRate()
    for caller in range(MOST_CALLERS):
        for _ in range(3):
            rate.admit(caller, "a", 0.0)
    shared = [rate.admit(f"x{number}", number, QUIET_SECONDS - 1.0) for number in range(25)]
    assert shared == [0] * MOST_OF_A_CALLER + [None] * 5, "there is no room for these"
    for name in ("bob", "eve"):
        own = [rate.admit(name, number, QUIET_SECONDS) for number in range(MOST_OF_A_CALLER + 1)]
        assert own == [0] * MOST_OF_A_CALLER + [None]
    assert rate.take_unsaid(QUIET_SECONDS) == 2 * MOST_CALLERS + 5 + 2


def test_room_is_made_as_soon_as_there_is_none() -> None:
    rate = RefusalRate()
    for caller in range(MOST_CALLERS):
        rate.admit(caller, "a", 0.0)
    assert [rate.admit("ann", "a", QUIET_SECONDS) for _ in range(2)] == [0, None]
    for name in ("bob", "eve"):
        own = [rate.admit(name, number, QUIET_SECONDS) for number in range(MOST_OF_A_CALLER)]
        assert own == [0] * MOST_OF_A_CALLER


def test_a_new_caller_takes_nothing_from_another() -> None:
    rate = RefusalRate()
    for _ in range(2):
        rate.admit("bob", "a", 0.0)
    rate.admit("eve", "a", QUIET_SECONDS)
    assert rate.admit("bob", "a", QUIET_SECONDS) == 1


def test_every_minute_has_its_bound() -> None:
    rate = RefusalRate()
    for minute in range(1, 4):
        now = minute * QUIET_SECONDS
        lines = [rate.admit("bob", (minute, number), now + number % 50) for number in range(100)]
        assert sum(line is not None for line in lines) == MOST_OF_A_CALLER


def test_a_question_for_what_is_unsaid_gives_no_caller_new_lines() -> None:
    rate = RefusalRate()
    for _ in range(MOST_GRANTED):
        assert rate.admit("bob", None, 0.0, Share.GRANTED) == 0
    assert rate.take_unsaid(QUIET_SECONDS - 1.0) == 0
    assert rate.admit("bob", None, QUIET_SECONDS - 1.0, Share.GRANTED) is None
    assert rate.admit("bob", None, QUIET_SECONDS, Share.GRANTED) == 0


def test_a_kind_outlives_the_minute_of_its_caller() -> None:
    rate = RefusalRate()
    rate.admit("bob", "a", 0.0)
    for now in (30.0, 31.0):
        rate.admit("bob", "b", now)
    assert rate.take_unsaid(QUIET_SECONDS) == 0
    assert rate.admit("bob", "c", QUIET_SECONDS) == 0, "in another minute of its caller"
    assert rate.admit("bob", "b", 32.0 + QUIET_SECONDS) == 1
    assert rate.admit("bob", "c", 2 * QUIET_SECONDS) == 0
    assert rate.admit("bob", "b", 2 * QUIET_SECONDS) is None


def test_it_is_silent_while_anything_is_unsaid() -> None:
    rate = RefusalRate()
    for kind in ("a", "b", "b"):
        rate.admit("bob", kind, 0.0)
    silent = [rate.is_silent]
    assert rate.take_unsaid(QUIET_SECONDS) == 1
    silent.append(rate.is_silent)
    for number in range(MOST_OF_A_CALLER + 1):
        rate.admit("bob", number, QUIET_SECONDS)
    assert [*silent, rate.is_silent] == [True, False, True], "in the end one had no line"


NOISE = {
    "invented faces": [(f"x{number}.y", "connect") for number in range(200)],
    "invented methods": [("HAServiceProtocol", f"m{number}") for number in range(200)],
    "invented pages": [("HTTP", f"GET /{number}") for number in range(200)],
    "calls that there are": [(face, name) for face, names in RIGHTS.items() for name in names],
}


@pytest.mark.parametrize("case", NOISE)
@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.STRICT])
def test_no_caller_hides_another_nor_its_own_control_action(case: str, mode: Mode) -> None:
    lines, uid = Lines(), [65534]
    later = list[float]()
    access = AccessControl(
        mode, target="t", audit=lines, own_uid=0, uid_of=lambda *_: uid[0], clock=lambda: 0.0,
        later=lambda seconds, _: later.append(seconds),
    )  # fmt: skip
    here = End("127.0.0.1", 6)
    for number, (face, name) in enumerate(NOISE[case]):
        access.refusal(access.caller_of(End(f"127.1.1.{number % 250}", 5), here), "rpc", face, name)
    refused = [entry for entry in lines.entries if entry.outcome is Outcome.REFUSED]
    assert len(refused) <= 2 * MOST_OF_A_CALLER
    asked = "HAServiceProtocol", "transitionToStandby"
    for caller in (65534, 4321):
        uid[0] = caller
        access.refusal(access.caller_of(End("127.0.0.1", 5), here), "rpc", *asked)
    said = {entry.caller.uid for entry in lines.entries if (entry.face, entry.action) == asked}
    assert 4321 in said
    assert 65534 in said or case == "calls that there are"
    assert later == [QUIET_SECONDS], "one question for all that was not written"


class Lines:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)


def test_admin_actions_always_and_refusals_at_a_bounded_rate() -> None:
    lines, now = Lines(), [0.0]
    access = AccessControl(
        Mode.AUTO, target="t", audit=lines, own_uid=0, uid_of=lambda *_: 1234, clock=lambda: now[0]
    )
    alice = access.caller_of(End("127.0.0.1", 5), End("127.0.0.1", 6)).named("alice")
    root = Caller("root", Method.PEER_UID, ALL_ROLES, "127.0.0.1:7", 0)
    for _ in range(3):
        assert access.refusal(alice, "rpc", "HAServiceProtocol", "transitionToStandby")
        assert not access.refusal(root, "rpc", "HAServiceProtocol", "transitionToStandby")
        assert not access.refusal(root, "rpc", "HAServiceProtocol", "monitorHealth")
    now[0] = QUIET_SECONDS
    assert access.refusal(alice, "rpc", "HAServiceProtocol", "transitionToStandby")
    told = [(entry.allowed, entry.caller.name, entry.alike) for entry in lines.entries]
    assert told == [
        (False, "alice", 0), (True, "root", 0), (True, "root", 0), (True, "root", 0),
        (False, "alice", 2),
    ]  # fmt: skip


def test_a_client_fills_no_audit_log_with_what_the_handlers_refuse() -> None:
    """Let a user ask a thousand times for rollEdits, which only a superuser gets."""
    lines = Lines()
    access = AccessControl(
        Mode.AUTO, target="t", audit=lines, own_uid=0, clock=lambda: 0.0, later=lambda *_: None
    )
    bob = Caller("bob", Method.PEER_UID, frozenset({Role.CLIENT}), "127.0.0.1:7", 1234)
    root = Caller("root", Method.PEER_UID, ALL_ROLES, "127.0.0.1:7", 0)
    asked = "rpc", "ClientProtocol", "rollEdits"
    for caller, expected in ((bob, MOST_GRANTED), (root, 1000)):
        for _ in range(500):
            access.refusal(caller, *asked)
            access.ended(caller, *asked, Outcome.FAILED, "you are no superuser")
        assert sum(entry.caller is caller for entry in lines.entries) == expected


def test_how_it_ended_is_a_line_of_its_own() -> None:
    lines = Lines()
    access = AccessControl(Mode.AUTO, target="t", audit=lines, own_uid=0)
    root = Caller("root", Method.PEER_UID, ALL_ROLES, "127.0.0.1:7", 0)
    access.ended(root, "rpc", "HAServiceProtocol", "transitionToStandby", Outcome.FAILED, "why")
    access.ended(root, "rpc", "HAServiceProtocol", "monitorHealth", Outcome.DONE)
    (entry,) = lines.entries
    assert (entry.outcome, entry.allowed, entry.reason) == (Outcome.FAILED, True, "why")
    line = hadoop_line(entry, "2026-11-22 11:03:07,211")
    assert line.endswith("\tproto=rpc\toutcome=failed\treason=why")


def test_the_file_is_appended_to_and_may_be_rotated(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = AuditLog(AuditFormat.BOTH, path)
    audit.write(REFUSED)
    audit.flush()
    path.rename(tmp_path / "audit.log.1")
    audit.write(REFUSED)
    audit.flush()
    for name in ("audit.log", "audit.log.1"):
        first, second = (tmp_path / name).read_text().splitlines()
        assert json.loads(first)["event"] == "audit"
        assert " INFO FSNamesystem.audit: allowed=false\tugi=bob\\n" in second
    assert path.stat().st_mode & 0o007 == 0


def lost() -> float:
    return REGISTRY.get_sample_value("nnha_audit_lines_lost_total") or 0.0


def test_a_file_that_cannot_be_written_is_counted(tmp_path: Path) -> None:
    before = lost()
    audit = AuditLog(AuditFormat.JSON, tmp_path / "no-such-folder/audit.log")
    audit.write(REFUSED)
    audit.flush()
    assert lost() == before + 1


def test_a_disk_that_hangs_stops_nobody(tmp_path: Path) -> None:
    """Use a pipe without a reader for the disk: its open never returns."""
    pipe = tmp_path / "audit.log"
    os.mkfifo(pipe)
    audit = AuditLog(AuditFormat.JSON, pipe)
    for _ in range(100):
        audit.write(REFUSED)
    assert any(thread.name == "audit file" for thread in threading.enumerate())
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    audit.flush()
    os.close(reader)
