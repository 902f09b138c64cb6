"""Writes and reads files by hdfs-native, a client in Rust.

Arguments: the conf directory, a folder, a step.
``write`` makes files and reads them again; ``read`` finds them as they were.
"""

import sys

from hdfs_native import Client

SIZES = (0, 1, 513, 3_000_000)


def content(size: int) -> bytes:
    return bytes((number * 7 + number // 251) % 256 for number in range(size))


def write(client: Client, folder: str) -> None:
    client.mkdirs(f"{folder}/below", 0o755, True)
    for size in SIZES:
        with client.create(f"{folder}/f{size}") as stream:
            stream.write(content(size))
    with client.append(f"{folder}/f513") as stream:
        stream.write(content(70_000))
    client.rename(f"{folder}/f1", f"{folder}/below/one")
    client.set_replication(f"{folder}/f513", 2)


def read(client: Client, folder: str) -> None:
    """Check that all of it is there."""
    expected = {
        f"{folder}/f0": b"",
        f"{folder}/below/one": content(1),
        f"{folder}/f513": content(513) + content(70_000),
        f"{folder}/f3000000": content(3_000_000),
    }
    for path, wanted in expected.items():
        with client.read(path) as stream:
            found = stream.read()
        assert found == wanted, f"{path}: {len(found)} bytes instead of {len(wanted)}"
    names = sorted(one.path.rpartition("/")[2] for one in client.list_status(folder))
    assert names == ["below", "f0", "f3000000", "f513"], names


def main() -> None:
    conf, folder, step = sys.argv[1:]
    client = Client(config_dir=conf)
    if step == "write":
        write(client, folder)
    read(client, folder)


if __name__ == "__main__":
    main()
