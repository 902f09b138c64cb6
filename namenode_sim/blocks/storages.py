"""The storages of all DataNodes, by number and by what DataNodes call them."""

from array import array
from collections.abc import Iterator
from typing import Final, Protocol

from namenode_sim.blocks.errors import TooManyStorages
from namenode_sim.blocks.model import NO_STORAGE, Storage, StorageNumber

MAX_STORAGES: Final = int(NO_STORAGE)


class StorageTable(Protocol):
    """The storages, for those that do not add or remove any."""

    def __iter__(self) -> Iterator[Storage]: ...

    def __len__(self) -> int: ...

    def at(self, number: StorageNumber) -> Storage: ...

    def find(self, node: str, uuid: str) -> Storage | None:
        """Return a DataNode's storage by its name."""
        ...

    def others(self, storage: Storage) -> list[Storage]: ...


class Storages:
    """Numbers are given again once a storage is gone, since they are few.

    ``node_of`` has a number for each storage's DataNode, so that whole reports are compared.
    """

    def __init__(self) -> None:
        self._numbered: list[Storage | None] = []
        self._by_name: dict[tuple[str, str], Storage] = {}
        self._free: list[StorageNumber] = []
        self._node_numbers: dict[str, int] = {}
        self._nodes: dict[str, list[Storage]] = {}
        self.node_of = array("I")

    def __iter__(self) -> Iterator[Storage]:
        return (storage for storage in self._numbered if storage is not None)

    def __len__(self) -> int:
        return len(self._by_name)

    def at(self, number: StorageNumber) -> Storage:
        storage = self._numbered[number]
        assert storage is not None
        return storage

    def known(self, number: StorageNumber) -> Storage | None:
        """Return the storage with a number; None if the number is not given."""
        return self._numbered[number] if number < len(self._numbered) else None

    def find(self, node: str, uuid: str) -> Storage | None:
        """Return a DataNode's storage by its name; None if it is unknown."""
        return self._by_name.get((node, uuid))

    def add(self, node: str, uuid: str) -> Storage:
        """Return a DataNode's storage, which is made if it is new.

        Raises:
            TooManyStorages: if no number is left.
        """
        known = self._by_name.get((node, uuid))
        if known is not None:
            return known
        if not self._free and len(self._numbered) >= MAX_STORAGES:
            raise TooManyStorages(node, uuid, MAX_STORAGES)
        node_number = self._node_numbers.setdefault(node, len(self._node_numbers))
        if self._free:
            storage = Storage(self._free.pop(), node, uuid)
            self._numbered[storage.number] = storage
            self.node_of[storage.number] = node_number
        else:
            storage = Storage(StorageNumber(len(self._numbered)), node, uuid)
            self._numbered.append(storage)
            self.node_of.append(node_number)
        self._by_name[node, uuid] = storage
        self._nodes.setdefault(node, []).append(storage)
        return storage

    def remove(self, storage: Storage) -> None:
        """Forget a storage that holds no block any more."""
        self._numbered[storage.number] = None
        self._free.append(storage.number)
        del self._by_name[storage.node, storage.uuid]
        self._nodes[storage.node].remove(storage)
        if not self._nodes[storage.node]:
            del self._nodes[storage.node]

    def of(self, node: str) -> list[Storage]:
        return self._nodes.get(node, [])

    def others(self, storage: Storage) -> list[Storage]:
        return [other for other in self._nodes[storage.node] if other is not storage]
