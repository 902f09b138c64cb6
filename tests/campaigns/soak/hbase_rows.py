"""Rows of an HBase table that are put and read through HBase's own client."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from py4j.protocol import Py4JError

BATCH: Final = 10
THREADS: Final = 4
REGIONS: Final = 4
_FAMILY: Final = b"f"
_COLUMN: Final = b"q"
_CACHED: Final = 500
_SETTINGS: Final = {
    # A NameNode or a region server that is away for a minute is no error.
    "hbase.client.retries.number": "60",
    "hbase.rpc.timeout": "60000",
    "hbase.client.operation.timeout": "180000",
}


def key_of(number: int) -> bytes:
    """Return the key of a row; neighbours lie in different regions."""
    return f"{(number * 2654435761 >> 8) & 0xFF:02x}-{number:08d}".encode()


def value_of(number: int) -> bytes:
    return random.Random(number).randbytes(100 + number % 400)


@dataclass(frozen=True, slots=True)
class Found:
    """What a table was found to hold."""

    rows: int
    lost: tuple[int, ...]
    """Acknowledged, and not there."""
    wrong: tuple[int, ...]
    """With another value, or another key, than was put."""


@dataclass(slots=True)
class Rows:
    """One table, the rows of it that were acknowledged, and the calls that failed."""

    gateway: Any
    acknowledged: set[int] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0
    _connection: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def connect(self) -> None:
        hbase = self._hbase
        conf = hbase.HBaseConfiguration.create()
        for name, value in _SETTINGS.items():
            conf.set(name, value)
        self._connection = hbase.client.ConnectionFactory.createConnection(conf)

    def servers(self) -> int:
        """Return how many region servers the master knows; 0 as long as there is no master."""
        try:
            metrics = self._admin().getClusterMetrics()
            return int(metrics.getLiveServerMetrics().size())
        except Py4JError:
            return 0

    def create(self, table: str) -> None:
        builders = self._hbase.client
        described = (
            builders.TableDescriptorBuilder.newBuilder(self._name(table))
            .setColumnFamily(builders.ColumnFamilyDescriptorBuilder.newBuilder(_FAMILY).build())
            .build()
        )
        step = 256 // REGIONS
        keys = self.gateway.new_array(self.gateway.jvm.byte, REGIONS - 1, 0)
        for at in range(REGIONS - 1):
            keys[at] = f"{(at + 1) * step:02x}".encode()
        self._admin().createTable(described, keys)

    def put(self, table: str, numbers: range) -> None:
        """Put all of these by some threads, batch after batch; returns when all were tried."""
        batches = iter(range(numbers.start, numbers.stop, BATCH))

        def work() -> None:
            opened = self._connection.getTable(self._name(table))
            while True:
                with self._lock:
                    first = next(batches, None)
                if first is None:
                    break
                self._put_batch(opened, range(first, min(first + BATCH, numbers.stop)))
            opened.close()

        threads = [threading.Thread(target=work, name=f"put rows {n}") for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def found(self, table: str) -> Found:
        """Read the whole table."""
        seen, wrong = set[int](), list[int]()
        for key, value in self._scanned(table):
            number = int(key[3:])
            seen.add(number)
            if key != key_of(number) or value != value_of(number):
                wrong.append(number)
        return Found(len(seen), tuple(sorted(self.acknowledged - seen)), tuple(wrong))

    def flush_and_compact(self, table: str) -> None:
        self._admin().flush(self._name(table))
        self._admin().majorCompact(self._name(table))

    def clone(self, table: str, snapshot: str, into: str) -> None:
        """Take a snapshot of a table, and make another one of it."""
        self._admin().snapshot(snapshot, self._name(table))
        self._admin().cloneSnapshot(snapshot, self._name(into))

    def _put_batch(self, table: Any, numbers: range) -> None:  # noqa: ANN401 - py4j has no types
        durable = self._hbase.client.Durability
        puts = self.gateway.jvm.java.util.ArrayList()
        for number in numbers:
            put = self._hbase.client.Put(key_of(number))
            put.addColumn(_FAMILY, _COLUMN, value_of(number))
            put.setDurability(durable.FSYNC_WAL if number % 2 else durable.SYNC_WAL)
            puts.add(put)
        began = time.monotonic()
        try:
            table.put(puts)
        except Py4JError as failure:
            with self._lock:
                self.failed.append(f"rows from {numbers.start}: {failure}"[:500])
        else:
            with self._lock:
                self.acknowledged.update(numbers)
                self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)

    def _scanned(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        opened = self._connection.getTable(self._name(table))
        scanner = opened.getScanner(self._hbase.client.Scan().setCaching(_CACHED))
        while results := scanner.next(_CACHED):
            for result in results:
                yield bytes(result.getRow()), bytes(result.value())
        scanner.close()
        opened.close()

    @property
    def _hbase(self) -> Any:  # noqa: ANN401 - py4j has no types
        return self.gateway.jvm.org.apache.hadoop.hbase

    def _admin(self) -> Any:  # noqa: ANN401 - py4j has no types
        return self._connection.getAdmin()

    def _name(self, table: str) -> Any:  # noqa: ANN401 - py4j has no types
        return self._hbase.TableName.valueOf(table)


def parts(rows: int, count: int) -> Sequence[range]:
    """Return the numbers of all rows in this number of ranges that follow each other."""
    ends = [rows * part // count for part in range(count + 1)]
    return [range(first, last) for first, last in pairwise(ends)]
