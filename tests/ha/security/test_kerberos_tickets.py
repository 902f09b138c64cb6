"""What becomes of our tickets where keytab, KDC or clock fail while a daemon runs."""

import os
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from ha.rpc.errors import ConnectFailed
from ha.security.kerberos import own
from ha.security.kerberos.auth_to_local import parse_rules
from ha.security.kerberos.own import OwnKerberos
from ha.security.sasl import gss
from ha.security.sasl.kerberos import KerberosInitiator
from ha.security.sasl.mechanism import Protection, SaslFailure
from tests.ha.rpc.kerberized import alice, asked, configuration, logged_in, secured_server
from tests.ha.rpc.wire import eventually
from tests.ha.security.kdc import REALM, Kdc, silent_kdc
from tests.log_lines import captured

SERVICE = f"nn/localhost@{REALM}"


def logged_in_with(realm: Kdc, name: str) -> OwnKerberos:
    rules = parse_rules("DEFAULT", "hadoop", REALM)
    return OwnKerberos(f"{name}@{REALM}", str(realm.keytab(name)), rules, (), ())


def is_good(tickets: gss.Credentials) -> bool:
    try:
        KerberosInitiator(tickets, SERVICE, tuple(Protection)).step(b"")
    except SaslFailure:
        return False
    return True


def breaks(path: Path, how: str) -> None:
    """Replace a keytab by something that is of no use."""
    path.unlink()
    match how:
        case "gone":
            pass
        case "a folder":
            path.mkdir()
        case "empty":
            path.touch()
        case "cut":
            path.write_bytes(b"\x05\x02\x00\x00\x00")
        case _:
            path.write_bytes(os.urandom(300))


BROKEN = ("gone", "a folder", "empty", "cut", "noise")


async def test_a_broken_keytab_is_said_and_the_tickets_that_are_there_go_on(
    realm: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "RENEWED_AT", 0.5)  # the library keeps the old ones until then
    names = {how: f"broken{number}" for number, how in enumerate(BROKEN)}
    realm.make_short("whole", *names.values(), seconds=16)
    whole = logged_in_with(realm, "whole")
    logins = {how: logged_in_with(realm, name) for how, name in names.items()}
    first = {how: login.tickets() for how, login in logins.items()}
    good = whole.tickets()
    with captured("kerberos.") as logs:
        for how, name in names.items():
            assert is_good(first[how])
            breaks(realm.keytab(name), how)

        def all_said() -> bool:
            assert [login.tickets() for login in logins.values()] == list(first.values())
            return len(logs) == len(names)

        await eventually(all_said, seconds=50)
        assert all(map(is_good, first.values()))
        await eventually(lambda: whole.tickets() is not good, seconds=50)
    for name in names.values():
        (line,) = [line for line in logs if line["principal"] == f"{name}@{REALM}"]
        assert line["event"] == "kerberos.not_renewed"
        assert str(realm.keytab(name)) in line["because"]
    assert len(logs) == len(names)


async def test_a_keytab_that_is_whole_again_is_used_without_a_restart(
    realm: Kdc, tmp_path: Path
) -> None:
    keytab, whole = tmp_path / "nn.keytab", realm.keytab("nn/localhost").read_bytes()
    keytab.write_bytes(whole)
    conf = configuration(realm, tmp_path, {"dfs.namenode.keytab.file": str(keytab)})
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(conf, realm)):
            assert await asked(port) == "alice None kerberos 0"
            keytab.write_bytes(b"broken")
            with (
                captured("rpc.connection.closed") as logs,
                pytest.raises(ConnectFailed, match="GSS initiate failed"),
            ):
                await asked(port)
            assert "Unsupported key table format" in str(logs)
            keytab.write_bytes(whole)
            assert await asked(port) == "alice None kerberos 0"


async def test_tickets_end_under_a_silent_kdc_and_are_had_again_as_soon_as_it_answers(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "RENEWED_AT", 0.5)
    realm.make_short("brief", seconds=8)
    login = logged_in_with(realm, "brief")
    first = login.tickets()
    assert is_good(first)
    with silent_kdc(tmp_path, monkeypatch) as ended, captured("kerberos.") as logs:
        ended()
        await eventually(lambda: login.tickets() is first and bool(logs), seconds=30)
        assert [line["event"] for line in logs] == ["kerberos.not_renewed"]
        await eventually(lambda: not is_good(first), seconds=30)
        for _ in range(3):
            with pytest.raises(
                SaslFailure, match=r"no Kerberos tickets: .*check .*brief\.keytab and the KDC"
            ):
                login.tickets()
    assert is_good(login.tickets())


def test_good_tickets_are_had_where_no_thread_can_renew_them(
    realm: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "RENEWED_AT", 0.0)
    login = logged_in_with(realm, "alice")
    first = login.tickets()

    def refuse(_: threading.Thread) -> None:
        refused.append("can't start new thread")
        raise RuntimeError(refused[-1])

    refused: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert login.tickets() is first
    assert refused


@pytest.mark.usefixtures("realm")
def test_callers_that_wait_for_tickets_fail_together(tmp_path: Path) -> None:
    """Otherwise each would wait for the hung keytab, or for a silent KDC, once those before it had.

    A thread of them all is then taken for as long as all of them wait.
    """
    keytab, rules = tmp_path / "hangs", parse_rules("DEFAULT", "hadoop", REALM)
    os.mkfifo(keytab)
    login = OwnKerberos(f"hangs@{REALM}", str(keytab), rules, (), ())

    def ask() -> str:
        with pytest.raises(SaslFailure) as failure:
            login.tickets()
        return str(failure.value)

    def end_a_read() -> None:
        os.close(os.open(keytab, os.O_RDWR))

    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(ask) for _ in range(8)]
        while not wait(asking, timeout=0, return_when=FIRST_COMPLETED).done:
            end_a_read()
        waiting = wait(asking, timeout=20).not_done
        while wait(asking, timeout=0).not_done:
            end_a_read()
    assert not waiting
    assert len({one.result() for one in asking}) == 1


@pytest.mark.parametrize("clock", ["time", "monotonic"])
def test_tickets_have_ended_by_whichever_clock_says_so(
    realm: Kdc, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    """A host's clock is set, or the host slept; or the clock was wrong, and is set back."""
    realm.make_in(realm.keytab("jumping"), "jumping")
    login = logged_in_with(realm, "jumping")
    first, here = login.tickets(), getattr(time, clock)
    monkeypatch.setattr(time, clock, lambda: here() + first.seconds - 1800)
    assert login.tickets() is first
    monkeypatch.setattr(time, clock, lambda: here() + first.seconds + 1)
    assert login.tickets() is not first
