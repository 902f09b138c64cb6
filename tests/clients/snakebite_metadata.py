"""Asks and changes metadata by snakebite-py3.  Arguments: host:port of each NameNode, a folder.

The folder is the one that ``native.py`` has filled.
"""

import sys

from snakebite.client import HAClient
from snakebite.namenode import Namenode


def main() -> None:
    """Look at what is there, change some of it, and look again."""
    *addresses, folder = sys.argv[1:]
    nodes = [
        Namenode(host, int(port)) for host, _, port in (one.partition(":") for one in addresses)
    ]
    client = HAClient(nodes, use_sasl=False)
    sizes = {one["path"]: one["length"] for one in client.ls([folder])}
    assert sizes[f"{folder}/f3000000"] == 3_000_000, sizes
    assert sizes[f"{folder}/f513"] == 70_513, sizes
    list(client.mkdir([f"{folder}/by/snakebite"], create_parent=True))
    list(client.touchz([f"{folder}/by/empty"]))
    list(client.rename([f"{folder}/by/empty"], f"{folder}/by/renamed"))
    list(client.chmod([f"{folder}/by/renamed"], 0o600))
    list(client.setrep([f"{folder}/f513"], 3))
    status = client.stat([f"{folder}/by/renamed"])
    assert status["length"] == 0, status
    assert client.test(f"{folder}/by/snakebite", directory=True)
    assert next(iter(client.count([folder])))["length"] == 3_070_514
    assert client.df()["capacity"] > 0
    list(client.delete([f"{folder}/by"], recurse=True))
    assert not client.test(f"{folder}/by", exists=True)


if __name__ == "__main__":
    main()
