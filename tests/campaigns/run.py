"""Start a long campaign by its name: soaks look for faults, benches measure."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

CAMPAIGNS: Final = {
    "soak": {
        "blocks": "tests.campaigns.soak.blocks:blocks",
        "checkpoint": "tests.campaigns.soak.checkpoint:main",
        "hbase": "tests.campaigns.soak.hbase:main",
        "hosts": "tests.campaigns.soak.hosts:main",
        "clients": "tests.campaigns.soak.clients:main",
        "deploy": "tests.campaigns.soak.deploy:main",
        "failover": "tests.campaigns.soak.failover:failover",
        "faults": "tests.campaigns.soak.faults.soak:main",
        "files": "tests.campaigns.soak.files:main",
        "fuzz": "tests.campaigns.soak.fuzz:fuzz",
        "image": "tests.campaigns.soak.image:main",
        "java": "tests.campaigns.soak.java:main",
        "journal": "tests.campaigns.soak.journal:journal",
        "kill": "deploy.local.demo.soak:kill",
        "lane": "tests.campaigns.soak.lane:main",
        "mutation": "tests.campaigns.soak.mutation:mutation",
        "newcomer": "tests.campaigns.soak.newcomer:main",
        "prepare": "tests.campaigns.soak.prepare:main",
        "security": "tests.campaigns.soak.security:main",
        "upstream": "tests.campaigns.soak.upstream:main",
        "wheel": "tests.campaigns.soak.wheel:main",
        "whole": "tests.campaigns.soak.whole:whole",
        "zkfc": "tests.campaigns.soak.zkfc:main",
    },
    "bench": {
        "blocks": "tests.campaigns.bench.blocks:main",
        "checkpoint": "tests.campaigns.bench.checkpoint:main",
        "failover": "tests.campaigns.bench.failover:main",
        "journal": "tests.campaigns.bench.journal:main",
        "formats": "tests.campaigns.bench.formats:main",
        "webhdfs": "tests.campaigns.bench.webhdfs:main",
    },
}


def main(arguments: Sequence[str]) -> int:
    kind, *rest = arguments
    known = CAMPAIGNS[kind]
    if not rest or rest[0] not in known:
        asked = f"there is no {kind} {rest[0]!r}" if rest else f"which {kind}?"
        sys.stderr.write(f"{asked}; there are: {', '.join(known)}\n")
        return 2
    module, attribute = known[rest[0]].split(":")
    campaign = getattr(import_module(module), attribute)
    if isinstance(campaign, click.Command):
        campaign.main(args=rest[1:], prog_name=f"./run {kind} {rest[0]}")
    return int(campaign(rest[1:]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
