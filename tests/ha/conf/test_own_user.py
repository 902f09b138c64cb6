"""The name of our own user, on a machine that has none for it."""

import os
import pwd

import pytest

from ha.conf.own_user import own_user, system_user


def test_the_environment_names_us_first_as_in_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    assert own_user() == "ann"


def test_hadoop_user_name_names_whom_we_ask_as_and_not_whom_the_machine_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.setenv("HADOOP_USER_NAME", "hdfs")
    assert (own_user(), system_user()) == ("hdfs", "ann")
    monkeypatch.setenv("HADOOP_USER_NAME", " ")
    assert own_user() == "ann"


@pytest.mark.parametrize("fault", [KeyError, OSError])
def test_a_container_that_knows_no_name_has_us_under_our_number(
    monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    def nobody(uid: int) -> pwd.struct_passwd:
        raise fault(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert own_user() == str(os.getuid())
