"""The syntax of dfs.ha.fencing.methods, and what a command finds in its environment."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencing.environment import MAX_VALUE_CHARACTERS, command_environment
from fencing.model import BadSpec, KillMethod, MethodSpec, ShellMethod, SshMethod, Target
from fencing.output import MAX_LINES, TAIL_LINES, Lines
from fencing.shell import abbreviate
from fencing.spec import parse_methods


@given(st.lists(st.binary(max_size=50) | st.sampled_from([b"\n" * 150, b"a\n" * 90])))
def test_output_is_the_same_lines_however_it_arrives(chunks: list[bytes]) -> None:
    emitted: list[str] = []
    lines = Lines(emitted.append)
    for chunk in chunks:
        lines.feed(chunk)
    lines.close()
    whole = b"".join(chunks)
    expected = [part.decode("utf-8", "replace").rstrip("\r") for part in whole.split(b"\n")]
    if not whole or whole.endswith(b"\n"):
        expected.pop()
    assert emitted == expected[:MAX_LINES]
    assert lines.dropped == max(0, len(expected) - MAX_LINES)
    assert list(lines.tail) == expected[-TAIL_LINES:]


TARGET = Target("ns1", "nn1", "dummyhost", 1234)

GOOD: dict[str, tuple[str, list[MethodSpec]]] = {
    "nothing is no methods": ("", []),
    "only blanks and comments": ("\n  \n # shell(true)\n", []),
    "one command": ("shell(/bin/true)", [ShellMethod("/bin/true")]),
    "brackets inside: the last one closes": ("shell(a (b) c)", [ShellMethod("a (b) c")]),
    "a comma belongs to the command": ("shell(a,b)", [ShellMethod("a,b")]),
    "blanks, comments, two methods": (
        "\n   # first\n  sshfence   \n\n\tshell(exit 1) # last resort\n",
        [SshMethod(None, 22), ShellMethod("exit 1")],
    ),
    "lines ended as on Windows": (
        "sshfence(a)\r\nshell(a)\r\n",
        [SshMethod("a", 22), ShellMethod("a")],
    ),
    "ssh user": ("sshfence(foo)", [SshMethod("foo", 22)]),
    "ssh: a number is a user": ("sshfence(12345)", [SshMethod("12345", 22)]),
    "ssh port": ("sshfence(:123)", [SshMethod(None, 123)]),
    "ssh: the lowest port": ("sshfence(:1)", [SshMethod(None, 1)]),
    "ssh: the highest port": ("sshfence(:65535)", [SshMethod(None, 65535)]),
    "as many as there may be": ("kill\n" * 20, [KillMethod()] * 20),
    "ssh user and port": ("sshfence(foo:2222)", [SshMethod("foo", 2222)]),
}

BAD = {
    "a strange name": ("foobar!", "Unable to parse line 1"),
    "empty brackets": ("shell()", "Unable to parse line 1"),
    "empty ssh brackets": ("sshfence()", "Unable to parse line 1"),
    "no argument": ("shell", "No argument passed"),
    "a blank argument": ("shell( )", "No argument passed"),
    "two on one line": ("sshfence shell(true)", "Unable to parse line 1"),
    "the second line is named": ("shell(true)\nshell(", "line 2"),
    "a comment sign eats the bracket": ("shell(echo #1)", "everything from # on is a comment"),
    "a Java class": ("com.example.Power(a)", "which nnha does not have"),
    "ssh: only a colon": ("sshfence(:)", "Unable to parse user and port"),
    "ssh: no port after the colon": ("sshfence(bar.com:)", "Unable to parse user and port"),
    "ssh: a port that is a word": ("sshfence(:xx)", "Unable to parse user and port"),
    "ssh: user and a word": ("sshfence(bar.com:xx)", "Unable to parse user and port"),
    "ssh: port 0": ("sshfence(:0)", "Unable to parse user and port"),
    "kill with an argument": ("kill(9)", "gives kill an argument"),
    "journal-epoch with an argument": ("journal-epoch(9)", "gives journal-epoch an argument"),
    "ssh: port 65536": ("sshfence(:65536)", "Unable to parse user and port"),
    "ssh: port 99999": ("sshfence(:99999)", "Unable to parse user and port"),
    "too many": ("shell(true)\n" * 21, "at most 20"),
}


@pytest.mark.row(
    "8.8 testArgsParsing", because="the table of all spellings, ssh's user and port among them"
)
@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_parses(case: tuple[str, list[MethodSpec]]) -> None:
    text, expected = case
    assert list(parse_methods(text)) == expected


@pytest.mark.row(
    "8.8 testBadArgsParsing", because="the table of all errors, those of ssh's arguments among them"
)
@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_refuses(case: tuple[str, str]) -> None:
    text, message = case
    with pytest.raises(BadSpec, match=message) as refusal:
        parse_methods(text)
    assert ("is a comment" in str(refusal.value)) == ("#" in text)


@given(st.text() | st.from_regex(r"(shell|sshfence|x)?\(?[a:#()\n0-9 ]*\)?"))
def test_no_text_raises_anything_but_a_bad_spec(text: str) -> None:
    with contextlib.suppress(BadSpec):
        parse_methods(text)


COMMANDS = st.text(
    st.characters(blacklist_characters="#\n", blacklist_categories=["Cs"]), min_size=1
).filter(lambda command: bool(command.strip()) and "\n" not in command)


@given(st.lists(COMMANDS.map(ShellMethod) | st.just(SshMethod("u", 22)), max_size=5))
def test_what_a_method_prints_is_what_it_was_parsed_from(methods: list[MethodSpec]) -> None:
    assert list(parse_methods("\n".join(str(method) for method in methods))) == methods


@pytest.mark.parametrize(
    ("command", "length", "expected"),
    [
        ("abcdef", 5, "a...f"),
        ("abcdef", 6, "abcdef"),
        ("abcdef", 7, "abcdef"),
        ("abcdefg", 5, "a...g"),
        ("abcdefgh", 5, "a...h"),
        ("abcdefgh", 6, "a...gh"),
        ("abcdefgh", 7, "ab...gh"),
    ],
)
def test_a_command_is_abbreviated_as_hadoop_does(command: str, length: int, expected: str) -> None:
    assert abbreviate(command, length) == expected


def test_the_environment_has_the_target_and_every_key_with_dots_and_dashes_replaced() -> None:
    found = command_environment(
        {"PATH": "/bin"}, {"dfs.ha.namenode.id": "nn1", "dfs.namenode.rpc-address": "h:1"}, TARGET
    )
    assert found == {
        "PATH": "/bin",
        "dfs_ha_namenode_id": "nn1",
        "dfs_namenode_rpc_address": "h:1",
        "target_host": "dummyhost",
        "target_port": "1234",
        "target_address": "dummyhost:1234",
        "target_nameserviceid": "ns1",
        "target_namenodeid": "nn1",
    }


@pytest.mark.parametrize(
    "key",
    [
        "ha.zookeeper.auth", "ha.zookeeper.auth.ns1.nn1", "hadoop.zk.ssl.keystore.PASSWORD",
        "fs.s3a.secret.key", "a.credential.b", "fs.s3a.access.key", "my.app.apikey",
    ],
)  # fmt: skip
def test_keys_that_look_secret_stay_here(key: str) -> None:
    assert "hidden" not in command_environment({}, {key: "hidden"}, TARGET).values()


def test_of_our_own_environment_a_command_gets_only_what_every_program_needs() -> None:
    needed = {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "TZ", "TMPDIR",
        "JAVA_HOME", "HADOOP_HOME", "HADOOP_CONF_DIR",
    }  # fmt: skip
    others = {
        "KRB5CCNAME", "AWS_TOKEN", "CREDENTIALS_DIRECTORY", "BASH_ENV", "LD_PRELOAD"
    }  # fmt: skip
    found = command_environment({name: f"our {name}" for name in needed | others}, {}, TARGET)
    ours = {name: value for name, value in found.items() if not name.startswith("target_")}
    assert ours == {name: f"our {name}" for name in needed}


@pytest.mark.parametrize(
    "key",
    [
        "BASH_ENV", "ENV", "PATH", "LD_PRELOAD", "LD.LIBRARY.PATH", "PYTHONPATH", "IFS", "PS4",
        "BASH_FUNC_id%%", "target.host", "HOME", "1st", "a b", "SHELLOPTS",
    ],
)  # fmt: skip
def test_the_configuration_never_steers_the_shell(key: str) -> None:
    clean = command_environment({}, {}, TARGET)
    assert command_environment({}, {key: "evil"}, TARGET) == clean


def test_a_password_in_a_fencing_command_is_no_variable() -> None:
    line = "shell(ipmi --password hunter2 $target_host)"
    found = command_environment({}, {"dfs.ha.fencing.methods": line}, TARGET)
    assert "hunter2" not in found["dfs_ha_fencing_methods"]


def test_values_that_no_program_can_be_given_are_left_out() -> None:
    impossible = {"a=b": "1", "nul": "a\0b", "long": "x" * 200_000, "": "1"}
    assert (
        command_environment({}, impossible, TARGET).keys()
        == command_environment({}, {}, TARGET).keys()
    )
    longest = "x" * MAX_VALUE_CHARACTERS
    assert command_environment({}, {"long": longest}, TARGET)["long"] == longest
