"""Notices as JSON: nothing is lost, newer keys pass, garbage is refused with what was found."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from ha.notices import model

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
PAUSE = model.Pause(
    owner="ann@ops1", reason="new switch", since=NOON, until=NOON + timedelta(hours=2)
)
MEMBER = model.Member(
    namenode="nn1",
    zkfc_http="h1:8119",
    zkfc_rpc="h1:8019",
    pid=42,
    started=NOON,
    health="healthy",
    state="standby",
    ready=True,
    not_ready_reason="",
    nofailover=False,
    priority=10,
    in_election=True,
    out_because="",
    version="0.1.0",
    pause_seen=NOON,
)
RECORD = model.FailoverRecord(
    at=NOON,
    namenode="nn2",
    cause="nn1 stopped answering health checks",
    actor=None,
    kind=model.FailoverKind.AUTO,
    result=model.FailoverResult.SUCCEEDED,
    failure=None,
    phases=(model.PhaseDuration("lock", 0.0), model.PhaseDuration("fenced", 0.25)),
    epoch=41,
    last_txid=9_184_203,
    previous="nn1",
    fencing=(
        model.FencingAttempt(
            method="sshfence", target="nn1", result="ok", seconds=0.2, detail="killed"
        ),
    ),
    session="0x10000a",
    lock_czxid=77,
)


def test_all_come_back_as_they_were() -> None:
    drain = model.Drain(owner="bob@ops1", reason="disk", since=NOON, until=None)
    assert model.decode_pause(model.encode_pause(PAUSE)) == PAUSE
    assert model.decode_drain(model.encode_pause(drain)) == drain
    assert model.decode_member(model.encode_member(MEMBER)) == MEMBER
    assert model.decode_record(model.encode_record(RECORD)) == RECORD
    assert RECORD.seconds == 0.25


def test_keys_never_disappear() -> None:
    bare = replace(RECORD, phases=(), epoch=None, last_txid=None, previous=None, fencing=())
    found = json.loads(model.encode_record(bare))
    assert list(found) == list(json.loads(model.encode_record(RECORD)))
    assert found["epoch"] is None
    assert found["fencing"] == []
    assert model.decode_record(model.encode_record(bare)) == bare


def test_newer_keys_pass() -> None:
    newer = json.loads(model.encode_pause(PAUSE)) | {"colour": "red"}
    assert model.decode_pause(json.dumps(newer).encode()) == PAUSE


def test_a_member_of_an_older_version_names_no_host() -> None:
    found = json.loads(model.encode_member(MEMBER))
    del found["host"]
    assert model.decode_member(json.dumps(found).encode()).host == ""


def test_times_are_utc_with_milliseconds() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=5)))
    found = json.loads(model.encode_pause(replace(PAUSE, since=east)))
    assert found["since"] == "2026-05-01T12:00:00.000Z"
    with pytest.raises(ValueError, match="no time zone"):
        model.encode_pause(replace(PAUSE, since=NOON.replace(tzinfo=None)))


def test_a_pause_is_over_at_its_end_and_one_without_an_end_never() -> None:
    assert not PAUSE.over(NOON + timedelta(hours=2) - timedelta(milliseconds=1))
    assert PAUSE.over(NOON + timedelta(hours=2))
    assert not replace(PAUSE, until=None).over(NOON + timedelta(days=9999))


def test_long_texts_are_cut() -> None:
    reason = model.decode_pause(model.encode_pause(replace(PAUSE, reason="x" * 10_000))).reason
    assert len(reason) == model.MAX_TEXT
    assert reason.endswith("x…")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\xff\x00", "2 bytes"),
        (b"", "0 bytes"),
        (b"[1]", "a JSON object is wanted"),
        (b"[" * 100_000, "100000 bytes"),
        (b"{}", "owner should be a text, found 'None'"),
        (b'{"owner":1}', "owner should be a text, found '1'"),
        (b'{"owner":"a","reason":"b","since":"noon"}', "since should be a time such as"),
        (b'{"owner":"a","reason":"b","since":"2026-05-01T12:00:00"}', "a time with its zone"),
        (
            b'{"owner":"a","reason":"b","since":"2026-05-01T12:00:00Z",'
            b'"until":"9999-12-31T23:59:59-05:00"}',
            "until should be a time whose UTC is in the calendar",
        ),
    ],
)
def test_garbage_is_refused_with_what_was_found(data: bytes, complaint: str) -> None:
    with pytest.raises(model.BadNotice, match=r"^no pause: ") as caught:
        model.decode_pause(data)
    assert complaint in str(caught.value)


def test_every_text_can_be_written_to_a_file() -> None:
    halved = b'{"owner":"a","reason":"\\ud800","since":"2026-05-01T12:00:00Z"}'
    assert model.decode_pause(halved).reason == "?"


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("kind", "magic", "kind should be one of auto, switchover, manual"),
        ("phases", 3, "phases should be a list"),
        ("phases", [{"name": "lock"}], r"record of a failover \(phases\): seconds should be"),
        ("phases", [{"name": "lock", "seconds": 10**400}], "seconds should be a number"),
        ("phases", [{"name": "lock", "seconds": float("nan")}], "seconds should be a number"),
        ("epoch", True, "epoch should be a whole number"),
        ("fencing", ["x"], "a JSON object is wanted"),
    ],
)
def test_a_record_is_checked_key_by_key(key: str, value: object, complaint: str) -> None:
    found = json.loads(model.encode_record(RECORD)) | {key: value}
    with pytest.raises(model.BadNotice, match=complaint):
        model.decode_record(json.dumps(found).encode())
