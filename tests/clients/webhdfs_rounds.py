"""Plays rounds over WebHDFS by fsspec's client or by the PyPI client hdfs, until input ends.

Arguments: ``fsspec`` or ``hdfs``, a folder, a seed, a folder of many entries and their number, the
addresses of both NameNodes' pages.  It prints the number of each round, then a summary.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from urllib.parse import quote

import requests
from fsspec.implementations.webhdfs import WebHDFS
from hdfs import InsecureClient
from hdfs.util import HdfsError
from requests.packages.urllib3.exceptions import HTTPError

from tests.clients.rounds import BLOCK_BYTES, Files, Rounds

USER = "root"
FAILURES = (HdfsError, requests.RequestException, HTTPError, OSError, RuntimeError)


@dataclass(slots=True)
class ByHdfs:
    """The PyPI client hdfs, which knows all NameNodes."""

    client: InsecureClient

    def write(self, path: str, data: bytes) -> None:
        self.client.write(path, data=data, overwrite=True, blocksize=BLOCK_BYTES)

    def append(self, path: str, data: bytes) -> None:
        self.client.write(path, data=data, append=True)

    def read(self, path: str, offset: int, length: int) -> bytes:
        with self.client.read(path, offset=offset, length=length) as stream:
            return bytes(stream.read())

    def length(self, path: str) -> int | None:
        try:
            return int(self.client.status(path)["length"])
        except HdfsError as refusal:
            if refusal.exception == "FileNotFoundException":
                return None
            raise

    def names(self, folder: str) -> list[str]:
        return list(self.client.list(folder))

    def rename(self, source: str, target: str) -> None:
        self.client.rename(source, target)

    def delete(self, path: str) -> None:
        if not self.client.delete(path):
            raise HdfsError("%s was not there", path)


@dataclass(slots=True)
class ByFsspec:
    """fsspec's client, of the NameNode that serves: it knows one only."""

    addresses: list[str]
    clients: dict[str, WebHDFS] = field(default_factory=dict)
    refusals_as_data: list[bytes] = field(default_factory=list)

    def _of_active(self) -> WebHDFS:
        """Return a client whose NameNode serves, the same as long as it does."""
        for _ in self.addresses:
            host, _, port = self.addresses[0].partition(":")
            client = self.clients.setdefault(port, WebHDFS(host, int(port), user=USER))
            with suppress(RuntimeError, requests.RequestException):
                client.home_directory()
                return client
            self.addresses.append(self.addresses.pop(0))
        raise RuntimeError("none of the NameNodes serves")

    def write(self, path: str, data: bytes) -> None:
        with self._of_active().open(path, "wb") as stream:
            stream.write(data)

    def append(self, path: str, data: bytes) -> None:
        """Append in two requests, as fsspec does below its ``open``, which fails for ``ab``."""
        client = self._of_active()
        asked = {"op": "APPEND", "user.name": USER}
        found = client.session.post(client.url + quote(path), params=asked, allow_redirects=False)
        found.raise_for_status()
        client.session.post(found.headers["Location"], data=data).raise_for_status()

    def read(self, path: str, offset: int, length: int) -> bytes:
        found = bytes(self._of_active().cat_file(path, offset, offset + length))
        if len(found) != length and b'"RemoteException"' in found:  # fsspec takes it for data
            self.refusals_as_data.append(found)
            raise RuntimeError(found[:200].decode())
        return found

    def length(self, path: str) -> int | None:
        try:
            return int(self._of_active().info(path)["length"])
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        return [one.rpartition("/")[2] for one in self._of_active().ls(folder)]

    def rename(self, source: str, target: str) -> None:
        self._of_active().mv(source, target)
        if self.length(target) is None:  # fsspec does not look at the answer
            raise RuntimeError(f"{source} was not renamed")

    def delete(self, path: str) -> None:
        self._of_active().rm(path)


def main() -> None:
    kind, folder, seed, many, entries, *addresses = sys.argv[1:]
    hdfs = InsecureClient(";".join(f"http://{one}" for one in addresses), user=USER)
    files: Files = ByHdfs(hdfs) if kind == "hdfs" else ByFsspec(addresses)
    rounds = Rounds(files, FAILURES, folder, int(seed), many, int(entries))
    ends = Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ends.set()

    Thread(target=wait_for_end, daemon=True).start()
    hdfs.makedirs(folder)
    for number in rounds.run():
        print(f"round {number}: {len(rounds.failed)} failed", flush=True)  # noqa: T201 - the one who started us reads it
        if ends.is_set():
            break
    rounds.check_all()
    print(rounds.summary(), *rounds.failed, sep="\n")  # noqa: T201 - as above


main()
