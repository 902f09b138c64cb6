"""``nnha config`` and ``nnha fence test`` on configurations that are right and wrong."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from ha.cli.explain.config import config
from ha.cli.operate.fence import fence
from ha.conf.keys.unused import NOT_USED
from tests.fencing.sshd import listener
from tests.ha.cli import schema
from tests.ha.cli.nnha_run import untouched_logging
from tests.ha.cli.stand_ins import write_configuration

PORTS = {
    f"{what}-{name}": 7000 + number
    for number, (what, name) in enumerate(
        (what, name) for what in ("rpc", "http", "zkfc", "zkfc-http") for name in ("nn1", "nn2")
    )
}


def run(command: str, conf_dir: Path, *words: str) -> Result:
    group = config if command == "config" else fence
    before = ["--conf-dir", str(conf_dir)] if command == "config" else []
    after = [] if command == "config" else ["--conf-dir", str(conf_dir)]
    with untouched_logging():
        return CliRunner().invoke(group, [*before, *words, *after])


def prepared(folder: Path, **extra: str) -> Path:
    shared = {"dfs.namenode.shared.edits.dir": "qjournal://127.0.0.1:7101/ns1"}
    write_configuration(folder, PORTS, **shared, **extra)
    return folder


def test_the_folder_may_stand_behind_the_subcommand_as_with_every_command(tmp_path: Path) -> None:
    behind = ["--conf-dir", str(prepared(tmp_path)), "-D", "dfs.ha.fencing.methods=shell(true)"]
    for words in (["show"], ["explain", "dfs.ha.fencing.methods"]):
        result = CliRunner().invoke(config, [*words, *behind])
        assert result.exit_code == 0, result.output
        assert "shell(true)" in result.stdout
    assert CliRunner().invoke(config, ["show", "--conf-dir", "none"]).exit_code == 2


def test_a_nameservice_that_no_client_could_find_is_doubted(tmp_path: Path) -> None:
    conf_dir = prepared(tmp_path, **{"dfs.ha.fencing.methods": "shell(true)"})
    key = "dfs.client.failover.proxy.provider"
    told = run("config", conf_dir, "validate")
    assert told.exit_code == 0
    assert f"warning: {key}.ns1 is not set: Hadoop's clients take hdfs://ns1" in told.stderr
    with_it = CliRunner().invoke(
        config, ["validate", "--conf-dir", str(conf_dir), "-D", f"{key}.ns1=a.Class"]
    )
    assert with_it.stderr == ""
    # A client looks for it with the suffix only.
    bare = CliRunner().invoke(
        config, ["validate", "--conf-dir", str(conf_dir), "-D", f"{key}=a.Class"]
    )
    assert bare.stderr == told.stderr


def test_show_names_the_file_and_hides_secrets(tmp_path: Path) -> None:
    secret = {"ha.zookeeper.auth": "digest:me:hush", "dfs.ha.fencing.methods": "shell(true)"}
    conf_dir = prepared(tmp_path, **secret)
    shown = run("config", conf_dir, "show", "-o", "json")
    assert shown.exit_code == 0, shown.output
    settings = {row["key"]: row for row in json.loads(shown.stdout)["settings"]}
    assert settings["dfs.ha.fencing.methods"]["value"] == "shell(true)"
    assert "hdfs-site.xml" in settings["dfs.ha.fencing.methods"]["origin"]
    assert settings["ha.zookeeper.auth"]["value"] == "(hidden)"
    assert "hush" not in run("config", conf_dir, "show", "--all").output


def test_explain_says_which_setting_wins(tmp_path: Path) -> None:
    conf_dir = prepared(
        tmp_path,
        **{"nnha.fencing.method-timeout": "10s", "nnha.fencing.method-timeout.ns1.nn2": "20s"},
    )
    plain = run("config", conf_dir, "explain", "nnha.fencing.method-timeout")
    assert "in effect        10.0" in plain.output
    second = run(
        "config", conf_dir, "explain", "nnha.fencing.method-timeout", "-ns", "ns1", "-nn", "nn2"
    )
    assert "in effect        20.0" in second.output
    assert "nnha.fencing.method-timeout.ns1.nn2" in second.output
    for part_or_misspelt in ("fencing.method", "nnha.fencing.methd-timeout"):
        unknown = run("config", conf_dir, "explain", part_or_misspelt)
        assert unknown.exit_code == 3
        assert "nnha.fencing.method-timeout" in unknown.output
    assert "See: nnha config show --all." in run("config", conf_dir, "explain", "").output


def test_explain_knows_the_clients_key_and_a_key_with_its_suffix(tmp_path: Path) -> None:
    """``doctor`` and ``validate`` ask for it by this very name."""
    proxy = "dfs.client.failover.proxy.provider"
    limit = "nnha.fencing.method-timeout"
    conf_dir = prepared(tmp_path, **{f"{proxy}.ns1": "a.Class", f"{limit}.ns1.nn2": "20s"})
    named = run("config", conf_dir, "explain", f"{proxy}.ns1")
    assert named.exit_code == 0, named.output
    assert named.stdout.splitlines()[0] == proxy
    assert "in effect        a.Class" in named.stdout
    assert "hdfs-site.xml line" in named.stdout
    plain = run("config", conf_dir, "explain", proxy)
    assert (plain.exit_code, "in effect        (not set)" in plain.stdout) == (0, True)
    node = run("config", conf_dir, "explain", f"{limit}.ns1.nn2")
    assert "in effect        20.0" in node.stdout
    for stranger in (f"{proxy}.ns9", f"{proxy}.ns1.nn1", "fs.defaultFS.ns1"):
        told = run("config", conf_dir, "explain", stranger)
        assert told.exit_code == 3
        assert f"reads no key {stranger!r}. Known: " in told.stderr


def test_validate_reads_everything_as_the_daemons_would(tmp_path: Path) -> None:
    good = run("config", prepared(tmp_path), "validate")
    assert good.exit_code == 0, good.output
    bad = run(
        "config",
        prepared(
            tmp_path,
            **{
                "dfs.ha.fencing.methods.ns1.nn2": "foobar!",
                "nnha.fencing.method-timeout.ns1.nn1": "soon",
                "dfs.ha.automatic-failover.enabled": "true",
            },
        ),
        "validate",
    )
    assert bad.exit_code == 8
    assert "Unable to parse line 1" in bad.output
    assert "'soon'" in bad.output
    assert "nn1 has no fencing method" in bad.output
    assert "ha.zookeeper.quorum is not set: no ZKFC starts without ZooKeeper" in bad.output
    assert "Traceback" not in bad.output


def test_what_nnha_does_not_use_is_explained_and_told_by_validate(tmp_path: Path) -> None:
    name = "dfs.namenode.handler.count"
    conf_dir = prepared(tmp_path, **{name: "50", "dfs.namenode.https-address.ns1.nn1": "h:1"})
    reason = f"known to Hadoop, not used by nnha, because {NOT_USED[name]}"
    told = run("config", conf_dir, "explain", name)
    assert (told.exit_code, told.stdout.splitlines()[:2]) == (0, [name, f"  {reason}"])
    assert "set by           " in told.stdout
    assert "hdfs-site.xml line" in told.stdout
    assert "in effect" not in told.stdout
    unset = run("config", conf_dir, "explain", "dfs.ha.allow.stale.reads")
    assert (unset.exit_code, "(not set)" in unset.stdout) == (0, True)
    suffixed = run("config", conf_dir, "explain", "dfs.namenode.https-address.ns1.nn1")
    assert (suffixed.exit_code, "JournalNode alone serves HTTPS" in suffixed.stdout) == (0, True)
    assert run("config", conf_dir, "explain", "dfs.no.such.key").exit_code == 3
    checked = run("config", conf_dir, "validate")
    assert checked.exit_code == 0
    ignored = [line for line in checked.stderr.splitlines() if line.startswith("ignored: ")]
    assert len(ignored) == 2
    assert f"{name} is known to Hadoop and not used by nnha: {NOT_USED[name]}" in ignored[0]


def test_what_keeps_a_daemon_from_starting_is_a_problem(tmp_path: Path) -> None:
    name = "dfs.http.policy"
    checked = run("config", prepared(tmp_path, **{name: "HTTPS_ONLY"}), "validate")
    assert checked.exit_code == 8
    (problem,) = [line for line in checked.stderr.splitlines() if line.startswith("problem: ")]
    assert f"{name} is HTTPS_ONLY, but of nnha's daemons a JournalNode alone serves" in problem
    assert "Namenode and datanode do not start. Keep these connections" in problem
    told = run("config", tmp_path, "explain", name)
    assert told.exit_code == 0
    assert "if asked for, namenode and datanode do not start" in told.stdout
    assert "in effect        HTTPS_ONLY" in told.stdout


def test_a_variable_that_stays_in_a_value_is_doubted(tmp_path: Path) -> None:
    """Hadoop takes such a value as it stands, too."""
    stays = {
        "hadoop.tmp.dir": "${hadoop.tmp.dir}/x",
        "dfs.namenode.name.dir.ns1.nn1": "${no.such.key}/y",
        "dfs.namenode.http-address.ns1.nn1": "${host}:1",
    }
    passes = {
        "dfs.ha.fencing.methods": "shell(/bin/true ${target_host})",
        "dfs.namenode.edits.dir": "/${user.name}",
        "not.ours": "${no.such.key}",
        "host": "h",
    }
    checked = run("config", prepared(tmp_path, **stays, **passes), "validate")
    told = [line for line in checked.stderr.splitlines() if " stays in it" in line]
    assert [(line.split(": ")[0], line.split(": ", 2)[2]) for line in told] == [
        ("warning", f"dfs.namenode.name.dir.ns1.nn1: ${{no.such.key}} stays in it{WHY}"),
        ("warning", f"hadoop.tmp.dir: ${{hadoop.tmp.dir}} stays in it{WHY}"),
    ]


WHY = ", as that is not set or refers to itself"


def problems(checked: Result) -> list[str]:
    assert checked.exit_code == 8, checked.output
    assert checked.exception is None or isinstance(checked.exception, SystemExit)
    lines = checked.stderr.splitlines()
    return [line.removeprefix("problem: ") for line in lines if line.startswith("problem: ")]


def test_every_bad_value_is_a_line_with_file_and_key(tmp_path: Path) -> None:
    bad = {
        "dfs.ha.automatic-failover.enabled": "ja",
        "dfs.ha.zkfc.port": "many",
        "ha.health-monitor.rpc-timeout.ms": "soon",
        "dfs.namenode.http-address.ns1.nn1": "host:port:1",
    }
    found = problems(run("config", prepared(tmp_path, **bad), "validate"))
    for name, value in bad.items():
        (line,) = [one for one in found if name in one]
        assert "hdfs-site.xml line " in line
        assert value in line


def test_two_daemons_on_one_address_are_named(tmp_path: Path) -> None:
    conf_dir = prepared(
        tmp_path,
        **{
            "dfs.ha.namenodes.ns1": "nn1,nn2",
            "dfs.namenode.rpc-address.ns1.nn1": "h1:8020",
            "dfs.namenode.rpc-address.ns1.nn2": "h2:8020",
            "dfs.namenode.http-address.ns1.nn1": "h1:9870",
            "dfs.namenode.http-address.ns1.nn2": "h1:9870",
        },
    )
    (line,) = problems(run("config", conf_dir, "validate"))
    assert line.startswith("h1:9870 is the address of the NameNode of nn1 (dfs.namenode.http")
    assert "the NameNode of nn2 (dfs.namenode.http-address.ns1.nn2)" in line


def test_two_controllers_of_one_host_need_two_ports(tmp_path: Path) -> None:
    conf_dir = prepared(
        tmp_path,
        **{
            "dfs.ha.namenodes.ns1": "nn1,nn2",
            "dfs.namenode.rpc-address.ns1.nn1": "h1:8020",
            "dfs.namenode.rpc-address.ns1.nn2": "h1:8021",
            "dfs.namenode.http-address.ns1.nn1": "h1:9870",
            "dfs.namenode.http-address.ns1.nn2": "h1:9871",
            **{f"dfs.ha.zkfc.port.ns1.{name}": "8019" for name in ("nn1", "nn2")},
            **{f"nnha.zkfc.http-address.ns1.{name}": "127.0.0.1:8119" for name in ("nn1", "nn2")},
        },
    )
    first, second = problems(run("config", conf_dir, "validate"))
    assert first.startswith("h1:8019 is the address of the ZKFC of nn1 (dfs.ha.zkfc.port")
    assert second.startswith("127.0.0.1:8119 is the address of the ZKFC of nn1 (nnha.zkfc.http")


def test_a_fencing_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    methods = {"dfs.ha.fencing.methods": "shell(/no/such/fence --host $target_host)"}
    (line,) = problems(run("config", prepared(tmp_path, **methods), "validate"))
    assert "dfs.ha.fencing.methods" in line
    assert "there is no such program on this machine" in line


def test_a_misspelt_nameservice_is_told_with_the_keys_of_the_right_one(tmp_path: Path) -> None:
    found = problems(run("config", prepared(tmp_path, **{"dfs.nameservices": "ns2"}), "validate"))
    assert any(
        "dfs.ha.namenodes.ns2 is not set, but dfs.ha.namenodes.ns1 is" in one for one in found
    )


def test_each_namenode_id_without_its_keys_is_named(tmp_path: Path) -> None:
    ids = {"dfs.ha.namenodes.ns1": "nn1,nn7,nn8"}
    found = problems(run("config", prepared(tmp_path, **ids), "validate"))
    for name in ("nn7", "nn8"):
        assert any(
            f"lists {name}, but dfs.namenode.rpc-address.ns1.{name} is not set" in one
            for one in found
        ), found


def test_no_form_of_showing_has_a_byte_of_a_secret(tmp_path: Path) -> None:
    secrets = {
        "ha.zookeeper.auth": "digest:nn:hunter2",
        "ha.zookeeper.auth.ns1": "digest:nn:hunter2",
        "ssl.server.keystore.password.ns1.nn1": "hunter2",
        "some.other.key": "digest:nn:hunter2",
        "dfs.ha.fencing.methods": "shell(ipmi --password hunter2 -p hunter2; curl -u a:hunter2 "
        "-H 'Authorization: Bearer hunter2'; sshpass -phunter2 x)",
        "fs.s3a.access.key": "hunter2",
        "my.app.apikey": "hunter2",
    }
    conf_dir = prepared(tmp_path, **secrets)
    told = [run("config", conf_dir, "show"), run("config", conf_dir, "show", "-o", "json")]
    told += [run("config", conf_dir, "show", "--all"), run("config", conf_dir, "validate")]
    told += [run("config", conf_dir, "explain", key) for key in secrets]
    told.append(run("config", conf_dir, "show", "-D", "ha.zookeeper.auth=digest:nn:hunter2"))
    for one in told:
        assert "hunter2" not in one.output
    assert told[-1].exit_code == 2


def test_fence_test_shows_and_does_nothing(tmp_path: Path) -> None:
    with listener() as (process, port):
        methods = {"dfs.ha.fencing.methods": "kill\njournal-epoch"}
        conf_dir = prepared(tmp_path, **methods)
        with_port = ["-D", f"dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:{port}"]
        shown = run("fence", conf_dir, "test", "nn1", *with_port)
        assert shown.exit_code == 0, shown.output
        assert "1. kill" in shown.output
        assert "fences edits only" in shown.output
        assert process.poll() is None
        really = run("fence", conf_dir, "test", "nn1", "--method", "1", "--really", *with_port)
        assert really.exit_code == 0, really.output
        assert process.wait(5) == -9
        assert "It was fenced: it serves no client any more." in really.output


def test_a_method_that_cannot_run_from_here_is_doubted_before_it_is_tried(tmp_path: Path) -> None:
    methods = {
        "dfs.ha.fencing.methods": "sshfence\njournal-epoch",
        "dfs.ha.fencing.ssh.private-key-files": str(tmp_path / "none"),
    }
    told = run("fence", prepared(tmp_path, **methods), "test", "nn1")
    assert told.exit_code == 0
    assert f"! sshfence: {tmp_path / 'none'}: No such file" in told.output
    assert told.output.count("!") == 1


def test_fence_test_refuses_without_methods_and_fails_when_none_succeeds(tmp_path: Path) -> None:
    none = run("fence", prepared(tmp_path), "test", "nn1", "-o", "json")
    assert none.exit_code == 3
    assert json.loads(none.stdout)["code"] == "BAD_CONFIGURATION"
    failing = prepared(tmp_path, **{"dfs.ha.fencing.methods": "shell(exit 1)"})
    told = run("fence", failing, "test", "nn1", "--really")
    assert told.exit_code == 4
    assert "NOT fenced" in told.output
    assert run("fence", failing, "test", "nn9").exit_code == 2
    unknown = run("fence", failing, "test", "nn9", "-o", "json")
    assert unknown.exit_code == 2
    assert schema.faults("ending", json.loads(unknown.stdout)) == []
    assert run("fence", failing, "test", "nn1", "--method", "2").exit_code == 2


def test_fence_test_for_programs(tmp_path: Path) -> None:
    """Show a failed method with what it wrote; secrets stay hidden here too."""
    methods = {"dfs.ha.fencing.methods": "journal-epoch\nshell(: --token x; echo oops; exit 3)"}
    conf_dir = prepared(tmp_path, **methods)
    shown = run("fence", conf_dir, "test", "nn1", "-o", "json")
    tried = run("fence", conf_dir, "test", "nn1", "--really", "--method", "2", "-o", "json")
    assert (shown.exit_code, tried.exit_code) == (0, 4)
    plan, told = json.loads(shown.stdout), json.loads(tried.stdout)
    assert schema.faults("fence-test", plan) == schema.faults("fence-test", told) == []
    assert (plan["result"], plan["attempts"]) == ("shown", [])
    assert [one["proves_gone"] for one in plan["methods"]] == [False, True]
    assert (told["result"], told["exit_code"]) == ("not_fenced", 4)
    assert [one["number"] for one in told["methods"]] == [2]
    (attempt,) = told["attempts"]
    assert (attempt["outcome"], attempt["output"]) == ("failed", "oops")
    assert attempt["method"].startswith("shell(: --token ***;")
    fenced = run("fence", conf_dir, "test", "nn1", "--really", "-o", "yaml")
    assert fenced.exit_code == 0
    assert 'result: "fenced"' in fenced.output
    told_so = run("fence", conf_dir, "test", "nn1", "--really")
    assert "there is no proof that it has ended" in told_so.output
