"""Writes and reads files over WebHDFS, by fsspec's client and by the PyPI client hdfs.

Arguments: a folder, a step, the addresses of both NameNodes' pages.
``write`` makes files and reads them again; ``read`` finds them as they were.
"""

import sys
from contextlib import suppress

import requests
from fsspec.implementations.webhdfs import WebHDFS
from hdfs import InsecureClient
from hdfs.util import HdfsError

MANY = 1010
"""More than one page of a listing."""


def content(size: int) -> bytes:
    return bytes((number * 7 + number // 251) % 256 for number in range(size))


WHOLE = content(3_000_000)


def of_active(addresses: list[str], user: str) -> WebHDFS:
    """Return fsspec's client of the NameNode that serves: it knows no second one."""
    for address in addresses:
        host, _, port = address.partition(":")
        client = WebHDFS(host, int(port), user=user, skip_instance_cache=True)
        with suppress(RuntimeError, requests.ConnectionError):  # a standby; one that is dead
            client.home_directory()
            return client
    raise AssertionError("none of them serves")


def write(client: InsecureClient, other: WebHDFS, folder: str) -> None:
    client.makedirs(f"{folder}/ü ;+%41", permission="750")
    client.write(f"{folder}/whole", data=WHOLE)
    client.write(f"{folder}/grown", data=WHOLE[:70_000])
    client.write(f"{folder}/grown", data=WHOLE[70_000:90_000], append=True)
    client.write(f"{folder}/empty", data=b"")
    client.rename(f"{folder}/empty", f"{folder}/ü ;+%41/moved")
    client.set_replication(f"{folder}/grown", 2)
    for number in range(MANY):
        client.makedirs(f"{folder}/many/{number:04}")
    with other.open(f"{folder}/by fsspec", "wb") as stream:
        stream.write(WHOLE)
    client.makedirs(f"{folder}/gone/below")
    said = ""
    try:
        client.delete(f"{folder}/gone")
    except HdfsError as refusal:
        said = str(refusal)
    assert "non empty" in said
    assert client.delete(f"{folder}/gone", recursive=True)


def read(client: InsecureClient, other: WebHDFS, folder: str) -> None:
    """Check that all of it is there, over both clients."""
    expected = {
        "whole": WHOLE, "grown": WHOLE[:90_000], "ü ;+%41/moved": b"", "by fsspec": WHOLE
    }  # fmt: skip
    for name, wanted in expected.items():
        with client.read(f"{folder}/{name}") as stream:
            assert stream.read() == wanted, name
        assert client.status(f"{folder}/{name}")["length"] == len(wanted)
    with client.read(f"{folder}/whole", offset=1_000_001, length=10) as stream:
        assert stream.read() == WHOLE[1_000_001:1_000_011]
    assert other.cat_file(f"{folder}/by fsspec", 5, 2_000_000) == WHOLE[5:2_000_000]
    assert sorted(client.list(folder)) == ["by fsspec", "grown", "many", "whole", "ü ;+%41"]
    assert client.list(f"{folder}/many") == [f"{number:04}" for number in range(MANY)]
    assert client.status(f"{folder}/ü ;+%41")["permission"] == "750"
    assert client.checksum(f"{folder}/whole") == client.checksum(f"{folder}/by fsspec")
    assert not other.exists(f"{folder}/gone")


def main() -> None:
    folder, step, *addresses = sys.argv[1:]
    client = InsecureClient(";".join(f"http://{one}" for one in addresses), user="root")
    other = of_active(addresses, "root")
    if step == "write":
        write(client, other, folder)
    read(client, other, folder)


main()
