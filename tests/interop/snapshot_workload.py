"""Snapshots of a real Hadoop cluster, and every kind of change below them."""

from tests.interop.file_workload import BLOCK, Client, Step


def snapshots(client: Client) -> None:
    """Taken, renamed, dropped; files and directories changed, moved and deleted in between."""
    fs, path = client.fs, client.java.path
    for name in ("kept", "appended", "truncated", "deleted", "moved", "replaced", "open"):
        client.write(f"/snap/files/{name}", BLOCK + 500)
    for name in ("deleted/below", "moved/below", "attributes"):
        client.mkdirs(f"/snap/dirs/{name}")
        client.write(f"/snap/dirs/{name}/leaf", 10)
    client.mkdirs("/outside")
    fs.allowSnapshot(path("/snap"))
    fs.createSnapshot(path("/snap"), "s1")
    _change(client, "first")
    fs.createSnapshot(path("/snap"), "s2")
    _change(client, "second")
    fs.createSnapshot(path("/snap"), "s3")
    fs.renameSnapshot(path("/snap"), "s3", "s3-renamed")
    client.rename("/outside/moved-first", "/snap/files/came-back")
    fs.delete(path("/outside/dir-first"), True)
    fs.deleteSnapshot(path("/snap"), "s2")


def _change(client: Client, time: str) -> None:
    fs, path = client.fs, client.java.path
    client.write(f"/snap/files/new-{time}", 10)
    stream = fs.append(path("/snap/files/appended"))
    stream.write(bytes(BLOCK))
    stream.close()
    file = path("/snap/files/truncated")
    fs.truncate(file, fs.getFileStatus(file).getLen() - 100)
    client.java.wait_until(lambda: fs.isFileClosed(file), "the cut block to be recovered")
    client.write("/snap/files/replaced", 20, overwrite=True)
    fs.setReplication(path("/snap/files/kept"), 2)
    fs.setXAttr(path("/snap/files/kept"), "user.when", time.encode())
    fs.setOwner(path("/snap/dirs/attributes"), time, "staff")
    fs.setQuota(path("/snap/dirs/attributes"), 1000, 2**63 - 1)
    fs.modifyAclEntries(path("/snap/dirs/attributes"), client.acl(f"user:{time}:rwx"))
    fs.setStoragePolicy(path("/snap/dirs"), "WARM")
    if time == "first":
        fs.delete(path("/snap/files/deleted"), False)
        fs.delete(path("/snap/dirs/deleted"), True)
        client.rename("/snap/files/moved", "/outside/moved-first")
        client.rename("/snap/dirs/moved", "/outside/dir-first")
        stream = fs.append(path("/snap/files/open"))
        stream.write(bytes(10))
        stream.hflush()
    else:
        client.rename("/snap/dirs/attributes", "/snap/files/attributes")
        client.rename("/snap/files/kept", "/snap/dirs/kept", "OVERWRITE")


def no_more_snapshots(client: Client) -> None:
    """Take and delete a directory's only snapshot; take one inside another's tree."""
    fs, path = client.fs, client.java.path
    client.mkdirs("/was/inner")
    client.write("/was/inner/file", 10)
    fs.allowSnapshot(path("/was"))
    fs.createSnapshot(path("/was"), "only")
    fs.delete(path("/was/inner"), True)
    fs.deleteSnapshot(path("/was"), "only")
    fs.disallowSnapshot(path("/was"))
    fs.allowSnapshot(path("/renames"))
    fs.createSnapshot(path("/renames"), "of the moved")


STEPS: tuple[Step, ...] = (snapshots, no_more_snapshots)
