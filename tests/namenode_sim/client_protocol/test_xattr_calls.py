"""Extended attributes: which callers see and change which, and what an inode can have."""

from dataclasses import dataclass, field

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import RemoveXAttr, SetXAttr
from namenode_sim.edits.values import XAttr, XAttrNamespace
from tests.namenode_sim.client_protocol import xattr_words
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served
from tests.namenode_sim.client_protocol.xattr_words import CREATE, REPLACE, change, prepared, seen

DENIED = "org.apache.hadoop.security.AccessControlException"
NOT_FOUND = "java.io.FileNotFoundException"
IO = "java.io.IOException"
ILLEGAL = "org.apache.hadoop.HadoopIllegalArgumentException"
NO_XATTR = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException"
MARK = "security.hdfs.unreadable.by.superuser"
POLICY = "system.hsm.block.storage.policy.id"


@dataclass(frozen=True, slots=True)
class Change:
    """What there is, what is to be set and by which flags, and what there is then or is said."""

    held: tuple[str, ...]
    asked: str
    flag: int
    after: list[str] = field(default_factory=list)
    java_class: str = ""
    told: str = ""


SET: dict[str, Change] = {
    "a new one": Change((), "user.a=1", CREATE, ["user.a=1"]),
    "a new one by either flag": Change((), "user.a=1", CREATE | REPLACE, ["user.a=1"]),
    "another value": Change(("user.a=1",), "user.a=2", REPLACE, ["user.a=2"]),
    "another value by either flag": Change(
        ("user.a=1", "user.b=1"), "user.a=2", CREATE | REPLACE, ["user.a=2", "user.b=1"]
    ),
    "no value": Change(("user.a=1",), "user.a", REPLACE, ["user.a"]),
    "an empty value, which is none": Change((), "user.a=", CREATE, ["user.a"]),
    "of another name": Change(("user.a=1",), "user.b=1", CREATE, ["user.b=1", "user.a=1"]),
    "of another namespace": Change(
        ("trusted.a=1",), "user.a=1", CREATE, ["user.a=1", "trusted.a=1"]
    ),
    "one that is there already": Change(
        ("user.a=1",), "user.a=2", CREATE,
        java_class=IO, told="XAttr: a already exists. The REPLACE flag must be specified.",
    ),
    "one that is not there": Change(
        (), "user.a=2", REPLACE,
        java_class=IO, told="XAttr: a does not exist. The CREATE flag must be specified.",
    ),
    "one that is there by another name": Change(
        ("user.b=1",), "user.a=2", REPLACE, java_class=IO, told="XAttr: a does not exist.",
    ),
    "one that is there in another namespace": Change(
        ("trusted.a=1",), "user.a=2", REPLACE, java_class=IO, told="XAttr: a does not exist.",
    ),
    "by no flag": Change((), "user.a=1", 0, java_class=ILLEGAL, told="A flag must be specified."),
    "by an unknown flag": Change(
        (), "user.a=1", 4, java_class=ILLEGAL, told="A flag must be specified."
    ),
    "the mark": Change((), MARK, CREATE, [MARK]),
    "the mark with a value": Change(
        (), f"{MARK}=1", CREATE,
        java_class=DENIED, told=f"Attempt to set a value for '{MARK}'. Values are not allowed",
    ),
    "the mark with an empty value": Change(
        (), f"{MARK}=", CREATE, java_class=DENIED, told=f"Attempt to set a value for '{MARK}'.",
    ),
    "other security": Change(
        (), "security.a", CREATE,
        java_class=DENIED, told="User doesn't have permission for xattr: security.a",
    ),
    "the mark's name elsewhere": Change(
        (), "system.hdfs.unreadable.by.superuser", CREATE, java_class=DENIED,
        told="User doesn't have permission for xattr: system.hdfs.unreadable.by.superuser",
    ),
    "the system's": Change(
        (), f"{POLICY}=1", CREATE,
        java_class=DENIED, told=f"User doesn't have permission for xattr: {POLICY}",
    ),
    "raw ones": Change(
        (), "raw.a=1", CREATE, java_class=DENIED, told="permission for xattr: raw.a"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SET.values(), ids=SET.keys())
async def test_setting(case: Change) -> None:
    served = await prepared(*case.held)
    edits = len(served.log.frames)
    if case.told:
        with pytest.raises(RemoteFault) as refusal:
            await change(served, case.asked, flag=case.flag)
        assert refusal.value.java_class == case.java_class
        assert case.told in refusal.value.message
        assert len(served.log.frames) == edits
    else:
        await change(served, case.asked, flag=case.flag)
        assert await seen(served) == case.after
        (edit,) = served.log.ops()[edits:]
        assert isinstance(edit, SetXAttr)
        assert edit.path == "/f"


@pytest.mark.parametrize(
    ("text", "value"), [("user.a=1", b"1"), ("user.a=", b""), ("user.a", None)]
)
async def test_an_edit_has_the_value_that_was_sent(text: str, value: bytes | None) -> None:
    served = await prepared(text)
    (edit,) = served.log.ops()[-1:]
    assert isinstance(edit, SetXAttr)
    assert edit.xattrs == (XAttr(XAttrNamespace.USER, "a", value),)


async def test_only_files_can_be_unreadable_by_the_superuser() -> None:
    served = await prepared()
    with pytest.raises(RemoteFault, match=f"Can only set '{MARK}' on a file") as refusal:
        await change(served, MARK, "/d")
    assert refusal.value.java_class == IO


@pytest.mark.parametrize(
    ("held", "user", "permissions"),
    [("user.a=1", "hdfs", True), (MARK, "alice", True), (MARK, "hdfs", False)],
)
async def test_who_reads_a_file(held: str, user: str, permissions: bool) -> None:
    served = await prepared(held)
    served.face.settings = Settings(permissions_enabled=permissions)
    await served.call("getBlockLocations", user=user, src="/f", offset=0, length=1)


async def test_the_superuser_does_not_read_a_file_with_the_mark() -> None:
    served = await prepared(MARK)
    with pytest.raises(RemoteFault, match="since the superuser is not allowed to") as refusal:
        await served.call("getBlockLocations", src="/f", offset=0, length=1)
    assert refusal.value.java_class == DENIED


REMOVED: dict[str, tuple[tuple[str, ...], str, str, str]] = {
    "one of two": (("user.a=1", "trusted.a=1"), "user.a", "", ""),
    "whatever its value is": (("user.a=1",), "user.a=2", "", ""),
    "one that is not there": (("user.b=1", "trusted.a=1"), "user.a", IO, "No matching attributes"),
    "one of nothing": ((), "user.a", IO, "No matching attributes found for remove operation"),
    "the mark": ((MARK,), MARK, DENIED, f"The xattr '{MARK}' can not be deleted."),
    "the mark where others are": (("user.a=1",), MARK, DENIED, "can not be deleted."),
    "the mark where nothing is": ((), MARK, IO, "No matching attributes"),
    "the system's": (("user.a=1",), POLICY, DENIED, f"permission for xattr: {POLICY}"),
}


@pytest.mark.parametrize(
    ("held", "asked", "java_class", "told"), REMOVED.values(), ids=REMOVED.keys()
)
async def test_removing(held: tuple[str, ...], asked: str, java_class: str, told: str) -> None:
    served = await prepared(*held)
    edits = len(served.log.frames)
    removal = served.call("removeXAttr", src="/f", xAttr=xattr_words.proto(asked))
    if told:
        with pytest.raises(RemoteFault) as refusal:
            await removal
        assert refusal.value.java_class == java_class
        assert told in refusal.value.message
        assert len(served.log.frames) == edits
    else:
        await removal
        assert await seen(served) == list(held[1:])
        (edit,) = served.log.ops()[edits:]
        assert isinstance(edit, RemoveXAttr)
        assert edit.xattrs == (XAttr(XAttrNamespace.USER, "a", None),)


#   name and value of at most four bytes
LIMITED = Settings(max_xattr_bytes=4)
BYTES = {
    "user.a=123": 4, "user.a=1234": 5, "user.ab=123": 5, "user.é=12": 4, "user.é=123": 5,
    "user.abcd": 4, "user.abcde": 5,
}  # fmt: skip


@pytest.mark.parametrize(("text", "size"), BYTES.items())
async def test_name_and_value_have_a_limit_in_bytes(text: str, size: int) -> None:
    served = await prepared(settings=LIMITED)
    if size <= LIMITED.max_xattr_bytes:
        await change(served, text)
        return
    with pytest.raises(RemoteFault, match=f"is 4, but the total size is {size}") as refusal:
        await change(served, text)
    assert refusal.value.java_class == ILLEGAL


#   what there is, what is set, and whether that is too much where two are allowed
COUNTED: dict[str, tuple[tuple[str, ...], str, bool]] = {
    "two": (("user.a=1",), "user.b=1", False),
    "two of two namespaces": (("user.a=1",), "trusted.a=1", False),
    "a third": (("user.a=1", "user.b=1"), "user.c=1", True),
    "a third beside trusted ones": (("trusted.a=1", "trusted.b=1"), "user.c=1", True),
    "a third that is trusted": (("user.a=1", "trusted.b=1"), "trusted.c=1", True),
    "one of two again": (("user.a=1", "user.b=1"), "user.a=2", False),
    "the mark does not count": (("user.a=1", "user.b=1"), MARK, False),
    "the mark that was there first does not count": ((MARK, "user.b=1"), "user.a=1", False),
    "one of too many, once there were more allowed": (
        ("user.a=1", "user.b=1", "user.c=1"), "user.a=2", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("held", "asked", "too_many"), COUNTED.values(), ids=COUNTED.keys())
async def test_an_inode_has_only_so_many(held: tuple[str, ...], asked: str, too_many: bool) -> None:
    served = await prepared(*held)
    served.face.settings = Settings(max_xattrs=2)
    if not too_many:
        await change(served, asked, flag=CREATE | REPLACE)
        return
    with pytest.raises(RemoteFault, match="would exceed limit of 2") as refusal:
        await change(served, asked, flag=CREATE | REPLACE)
    assert refusal.value.java_class == IO


ALL = ("user.a=1", "trusted.b=2", MARK)
READ: dict[str, tuple[str, tuple[str, ...], list[str] | str]] = {
    "all": ("hdfs", (), [MARK, "trusted.b=2", "user.a=1"]),
    "the supergroup's": ("admin", (), [MARK, "trusted.b=2", "user.a=1"]),
    "what everybody sees": ("alice", (), [MARK, "user.a=1"]),
    "in the order of the question": ("hdfs", ("user.a", MARK), ["user.a=1", MARK]),
    "the value is not asked for": ("alice", ("user.a=7",), ["user.a=1"]),
    "one that there is not": ("alice", ("user.a", "user.c"), NO_XATTR),
    "one of another namespace": ("hdfs", ("trusted.a",), NO_XATTR),
    "one of another name": ("hdfs", ("user.b",), NO_XATTR),
    "what one may not see": ("alice", ("user.a", "trusted.b"), DENIED),
    "what nobody may see": ("hdfs", (POLICY,), DENIED),
}


@pytest.mark.parametrize(("user", "asked", "answer"), READ.values(), ids=READ.keys())
async def test_reading(user: str, asked: tuple[str, ...], answer: list[str] | str) -> None:
    served = await prepared(*ALL)
    if isinstance(answer, list):
        assert await seen(served, *asked, user=user) == answer
        return
    with pytest.raises(RemoteFault) as refusal:
        await seen(served, *asked, user=user)
    assert refusal.value.java_class == answer


async def test_a_list_has_all_that_one_may_see() -> None:
    """PBHelperClient.convertListXAttrsResponse sends the values, which a Java client drops."""
    served = await prepared(*ALL)
    assert await xattr_words.listed(served) == [MARK, "trusted.b=2", "user.a=1"]
    assert await xattr_words.listed(served, user="alice") == [MARK, "user.a=1"]


async def test_system_and_raw_attributes_are_not_shown() -> None:
    served = await prepared()
    await served.call("setStoragePolicy", src="/d", policyName="COLD")
    served.log_and_apply(SetXAttr("/d", (XAttr(XAttrNamespace.RAW, "a", b"1"),)))
    await change(served, "user.a=1", "/d")
    assert await seen(served, src="/d") == ["user.a=1"]
    assert await xattr_words.listed(served, "/d") == ["user.a=1"]


async def test_trusted_attributes_are_the_superuser_s_without_permissions_too() -> None:
    served = await prepared("user.a=1", "trusted.b=2", settings=Settings(permissions_enabled=False))
    assert await seen(served, user="alice") == ["user.a=1"]
    with pytest.raises(RemoteFault, match=r"permission for xattr: trusted\.c"):
        await change(served, "trusted.c=1", user="alice")


CALLS: dict[str, Fields] = {
    "setXAttr": {"xAttr": xattr_words.proto("user.a=1"), "flag": CREATE},
    "removeXAttr": {"xAttr": xattr_words.proto("user.a")},
    "getXAttrs": {},
    "listXAttrs": {},
}


@pytest.mark.parametrize(("method", "fields"), CALLS.items(), ids=CALLS.keys())
async def test_no_call_is_taken_where_xattrs_are_switched_off(method: str, fields: Fields) -> None:
    served = await prepared("user.a=1")
    served.face.settings = Settings(xattrs_enabled=False)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, src="/f", **fields)
    assert (refusal.value.java_class, refusal.value.message) == (
        IO,
        "The XAttr operation has been rejected.  Support for XAttrs has been disabled by setting "
        "dfs.namenode.xattrs.enabled to false.",
    )


@pytest.mark.parametrize(("method", "fields"), CALLS.items(), ids=CALLS.keys())
async def test_a_path_without_an_inode_is_refused(method: str, fields: Fields) -> None:
    served = await prepared()
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, src="/none", **fields)
    assert (refusal.value.java_class, refusal.value.message) == (NOT_FOUND, "cannot find /none")


#   the mode of what alice owns, who changes it, and what is said; the sticky bit of a file is none
CHANGED: dict[str, tuple[str, int, str, str]] = {
    "where one may write": ("/x", 0o666, "bob", ""),
    "a directory where one may write": ("/y", 0o777, "bob", ""),
    "where one may not": ("/x", 0o755, "bob", 'access=WRITE, inode="/x"'),
    "a directory where one may not": ("/y", 0o755, "bob", 'access=WRITE, inode="/y"'),
    "one's own where one may not": ("/x", 0o555, "alice", 'access=WRITE, inode="/x"'),
    "a sticky directory": ("/y", 0o1777, "bob", "bob is not the owner of inode=/y"),
    "one's own sticky directory": ("/y", 0o1555, "alice", ""),
    "the superuser's right": ("/y", 0o1000, "hdfs", ""),
    "a file with the sticky bit": ("/x", 0o1666, "bob", ""),
}


@pytest.mark.parametrize(("src", "mode", "user", "told"), CHANGED.values(), ids=CHANGED.keys())
async def test_who_changes_a_user_s_attributes(src: str, mode: int, user: str, told: str) -> None:
    served = await owned(src, mode)
    for method in ("setXAttr", "removeXAttr"):
        step = served.call(method, user=user, src=src, **CALLS[method])
        if not told:
            await step
            continue
        with pytest.raises(RemoteFault, match=told) as refusal:
            await step
        assert refusal.value.java_class == DENIED


@pytest.mark.parametrize(("src", "mode"), [("/x", 0), ("/y", 0), ("/y", 0o1000)])
async def test_anybody_changes_them_where_permissions_are_switched_off(src: str, mode: int) -> None:
    served = await owned(src, mode)
    served.face.settings = Settings(permissions_enabled=False)
    await change(served, "user.a=1", src, user="bob")


async def test_values_and_names_need_the_right_to_read() -> None:
    served = await owned("/y", 0o711)
    await change(served, "user.a=1", "/y")
    for method in ("getXAttrs", "listXAttrs"):
        with pytest.raises(RemoteFault, match='access=READ, inode="/y"'):
            await served.call(method, src="/y", user="bob")
    await served.touch("/y/f", user="alice")
    await served.call("setPermission", src="/y", permission={"perm": 0o766})
    with pytest.raises(RemoteFault, match='access=EXECUTE, inode="/y"'):
        await xattr_words.listed(served, "/y/f", "bob")


async def owned(src: str, mode: int) -> Served:
    """``/x`` is a file and ``/y`` a directory; one of them is alice's and has this mode."""
    served = await prepared()
    await served.touch("/x")
    await served.mkdirs("/y")
    await served.call("setOwner", src=src, username="alice", groupname="alice")
    await served.call("setPermission", src=src, permission={"perm": mode})
    return served


@pytest.mark.parametrize(
    ("path", "user", "reads", "writes"),
    [
        ("/.reserved/raw/f", "hdfs", True, True),
        ("/f", "hdfs", False, False),
        ("/.reserved/raw/f", "alice", True, False),
        ("/.reserved/raw/f", "carol", False, False),
    ],
)
async def test_raw_attributes_are_read_below_the_raw_path_and_written_by_the_superuser(
    path: str, user: str, *, reads: bool, writes: bool
) -> None:
    """``distcp -px`` copies by that path, so that they are kept as they are."""
    served = await prepared()
    await served.call("setOwner", src="/f", username="alice")
    await served.call("setPermission", src="/f", permission={"perm": 0o600})
    raw = {"namespace": "RAW", "name": "a1", "value": b"1"}
    await served.call("setXAttr", src="/.reserved/raw/f", xAttr=raw, flag=CREATE)
    calls_made: list[tuple[bool, str, Fields]] = [
        (reads, "getXAttrs", {"src": path, "xAttrs": [raw]}),
        (writes, "setXAttr", {"src": path, "xAttr": raw, "flag": REPLACE}),
        (writes, "removeXAttr", {"src": path, "xAttr": raw}),
    ]
    for may, method, fields in calls_made:
        if may:
            await served.call(method, user=user, **fields)
        else:
            with pytest.raises(RemoteFault) as fault:
                await served.call(method, user=user, **fields)
            assert fault.value.java_class == DENIED


async def test_raw_attributes_are_listed_below_the_raw_path_alone() -> None:
    served = await prepared()
    raw = {"namespace": "RAW", "name": "a1", "value": b"1"}
    await served.call("setXAttr", src="/.reserved/raw/f", xAttr=raw, flag=CREATE)
    for user in ("hdfs", "alice"):
        for listed, names in (("/f", []), ("/.reserved/raw/f", ["a1"])):
            answer = await served.call("listXAttrs", user=user, src=listed)
            assert [one.name for one in answer.xAttrs] == names  # type: ignore[attr-defined]
