"""``./run soak hosts``: the pages for operators, carried out on hosts of their own, and under load.

Needs root, network and mount namespaces, nftables, sshd, Java, Prometheus and MIT's KDC.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.signals import orderly_end
from tests import ROOT, needs
from tests.campaigns.soak.faults import file_clients, network
from tests.campaigns.soak.faults.file_clients import Plan
from tests.hosts import lab, pages
from tests.hosts.page import CLIENT, Kind
from tests.hosts.walk import walk

PAGES = ("metrics.md", "web.md", "security.md")
"""What is carried out between the guide's first day and the rest of it."""
CLIENT_SECONDS = 300.0


@click.command()
@click.option("--kerberos", "only_kerberos", is_flag=True, help="Only docs/kerberos.md.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, only_kerberos: bool, as_object: bool) -> None:
    """Carry the pages out on five hosts; end with 1 if a step fails or a byte is lost."""
    also = "" if only_kerberos else needs.PROMETHEUS.lacking()
    lacking = network.lacking() or needs.KDC.lacking() or also
    if lacking:
        raise click.ClickException(lacking)
    with orderly_end(), tempfile.TemporaryDirectory(prefix="nnha-hosts-") as folder:
        plays = {"kerberos": kerberize}
        if not only_kerberos:
            plays = {"pages": play, "migration": migrate, **plays}
        found: dict[str, Any] = {"passed": True}
        for name, one in plays.items():
            if found["passed"]:
                found |= one(Path(folder) / name)
    for name, value in found.items():
        click.echo(f"{name:24} {value}", err=True)
    if as_object:
        click.echo(json.dumps({"task": "soak", "name": "hosts", **found}))
    sys.exit(0 if found["passed"] else 1)


def play(folder: Path) -> dict[str, Any]:
    """Carry the pages out; return what it came to, with what the clients saw."""
    found: dict[str, Any] = {"passed": False}
    with lab.running(folder) as hosts:
        try:
            found["first_day_seconds"] = round(walk(hosts, pages.first_day()), 1)
            for name in PAGES:
                found[f"{name}_seconds"] = round(walk(hosts, pages.page(name)), 1)
            plan = Plan(1, "/etc/nnha/conf", "/tmp/files", "/tmp/outcome.json")
            client = hosts.hosts[CLIENT]
            command = f"HADOOP_USER_NAME=hdfs exec {_words(file_clients.argv(plan))}"
            process = client.start(f"cd {ROOT} && {command}").process
            _wait_for(hosts, f"{plan.outcome}.begun")
            found["every_day_seconds"] = round(walk(hosts, pages.every_day()), 1)
            client.must("pkill -f '[f]ile_clients'")
            process.wait(CLIENT_SECONDS)
            outcome = json.loads(client.must(f"cat {plan.outcome}"))
            found |= {f"files_{name}": value for name, value in outcome.items()}
            found["by_hand_seconds"] = round(walk(hosts, pages.by_hand()), 1)
            found["passed"] = outcome["acknowledged"] > 0 and not outcome["wrong"]
        except AssertionError as failure:
            found["failure"] = f"{failure}\n{hosts.kept_logs()}"
    return found


def migrate(folder: Path) -> dict[str, Any]:
    """Make a pair of one NameNode by docs/migration.md; the file of before must be there still.

    A name directory that has been active since its format has every edit, as that of a single one.
    """
    found: dict[str, Any] = {"passed": False}
    with lab.running(folder) as hosts:
        try:
            walk(hosts, pages.first_file())
            for host in hosts.hosts.values():
                host.must(_END_ALL)
            hosts.hosts["host2"].must("rm -rf /data/nn/*")
            walk(hosts, (step for step in pages.first_file() if step.kind is Kind.BACKGROUND))
            found["migration.md_seconds"] = round(walk(hosts, pages.page("migration.md")), 1)
            read = hosts.hosts[CLIENT].must(
                "nnha dfs -cat first && nnha dfs -put /etc/hosts second"
            )
            found["passed"] = read == f"{CLIENT}\n"
        except AssertionError as failure:
            found["failure"] = f"{failure}\n{hosts.kept_logs()}"
    return found


def kerberize(folder: Path) -> dict[str, Any]:
    """Go over to Kerberos by docs/kerberos.md, and fetch an image anew by a ticket.

    On one host the kernel says who calls, and all names are one: there much of it cannot fail.
    """
    found: dict[str, Any] = {"passed": False}
    with lab.running(folder) as hosts:
        try:
            walk(hosts, pages.first_file())
            found["kerberos.md_seconds"] = round(walk(hosts, pages.page("kerberos.md")), 1)
            walk(hosts, pages.lost_name_directory())
            hosts.hosts["host4"].must("until nnha status --check; do sleep 1; done")
            found["passed"] = True
        except AssertionError as failure:
            found["failure"] = f"{failure}\n{hosts.kept_logs()}"
    return found


_END_ALL = (
    "pkill -f '[-]m nnha |[Q]uorumPeerMain'; "
    "while pgrep -f '[-]m nnha |[Q]uorumPeerMain'; do sleep 0.1; done; "
    "rm -rf /data/jn/* /data/zk/version-2"
)
"""Stops a host's daemons, and forgets its journal and its part of ZooKeeper."""


def _words(argv: list[str]) -> str:
    return " ".join(f"'{word}'" for word in argv)


def _wait_for(hosts: lab.Lab, path: str) -> None:
    wait_until(
        lambda: hosts.hosts[CLIENT].run(f"test -e {path}").code == 0,
        what="clients that write files",
        deadline_seconds=CLIENT_SECONDS,
    )


if __name__ == "__main__":
    main()
