"""Calls about the cluster rather than a path: defaults, policies, and what is not served."""

import time

import pytest
from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, FILE_NOT_FOUND, UNSUPPORTED_OPERATION
from hadoop.block_tokens import data_secret, first_ring
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ChecksumTypeProto, FsServerDefaultsProto
from hadoop.wire.handshake import data_user
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import RollingUpgradeStart, SetStoragePolicy
from tests.namenode_sim.client_protocol import namenode_in_memory, test_create


async def test_the_defaults_of_clients_are_settings() -> None:
    served = namenode_in_memory.serve(
        settings=Settings(
            block_size=1 << 20,
            bytes_per_checksum=256,
            checksum_type="CRC32",
            write_packet_size=1 << 15,
            replication=2,
            file_buffer_size=8192,
            trash_interval_minutes=60,
        )
    )
    answer = await served.call("getServerDefaults")
    assert isinstance(answer, calls.GetServerDefaultsResponseProto)
    assert answer.serverDefaults == FsServerDefaultsProto(
        blockSize=1 << 20,
        bytesPerChecksum=256,
        checksumType=ChecksumTypeProto.CHECKSUM_CRC32,
        writePacketSize=1 << 15,
        replication=2,
        fileBufferSize=8192,
        trashInterval=60,
        encryptDataTransfer=False,
        keyProviderUri="",
        policyId=7,
        snapshotTrashRootEnabled=False,
    )


@pytest.mark.parametrize("algorithm", [None, "", "rc4"])
async def test_keys_of_encrypted_connections_are_given_where_clients_are_to_ask(
    algorithm: str | None,
) -> None:
    served = namenode_in_memory.serve(settings=Settings(data_algorithm=algorithm))
    defaults = await served.call("getServerDefaults")
    assert isinstance(defaults, calls.GetServerDefaultsResponseProto)
    assert defaults.serverDefaults.encryptDataTransfer == (algorithm is not None)
    assert await served.call("getDataEncryptionKey") == calls.GetDataEncryptionKeyResponseProto()
    now_ms = time.time_ns() // 1_000_000
    ring = served.cluster.block_keys = first_ring(5, now_ms, 10**8, 10**7, bytes)
    for _ in "ab":
        answer = await served.call("getDataEncryptionKey")
        assert isinstance(answer, calls.GetDataEncryptionKeyResponseProto)
        assert answer.HasField("dataEncryptionKey") == (algorithm is not None)
        if algorithm is not None:
            made, pool = answer.dataEncryptionKey, served.cluster.pool
            assert made.encryptionAlgorithm == algorithm
            assert abs(made.expiryDate - now_ms - 10**7) < 10**6
            found = data_secret(data_user(made), pool, ring.known, now_ms)
            assert made.encryptionKey == found


async def test_all_storage_policies_are_listed() -> None:
    answer = await namenode_in_memory.serve().call("getStoragePolicies")
    assert isinstance(answer, calls.GetStoragePoliciesResponseProto)
    found = {policy.policyId: policy.name for policy in answer.policies}
    assert (len(found), found[7], found[2]) == (8, "HOT", "COLD")


async def with_policies() -> namenode_in_memory.Served:
    """``/cold`` has a policy, ``/cold/warm`` another; a snapshot of ``/cold`` has both."""
    served = await namenode_in_memory.linked()
    await served.mkdirs("/cold/warm")
    await served.touch("/cold/f")
    await served.touch("/cold/warm/f")
    await served.call("setStoragePolicy", src="/cold", policyName="COLD")
    await served.call("setStoragePolicy", src="/cold/warm", policyName="WARM")
    await served.take_snapshot("/cold", "one")
    return served


POLICIES = {
    "/": "HOT",
    "/f": "HOT",
    "/cold": "COLD",
    "/cold/f": "COLD",
    "/cold/warm": "WARM",
    "/cold/warm/f": "WARM",
    "/cold/.snapshot/one/f": "COLD",
    "/cold/.snapshot/one/warm/f": "WARM",
}


@pytest.mark.parametrize(("path", "name"), POLICIES.items(), ids=POLICIES.keys())
async def test_the_nearest_storage_policy_above_is_in_force(path: str, name: str) -> None:
    served = await with_policies()
    answer = await served.call("getStoragePolicy", path=path)
    assert isinstance(answer, calls.GetStoragePolicyResponseProto)
    assert answer.storagePolicy.name == name


WITHOUT_POLICY: dict[str, tuple[str, str, str]] = {
    "nothing": ("/none", FILE_NOT_FOUND, "File/Directory does not exist: /none"),
    "a link": ("/link", UNSUPPORTED_OPERATION, "Storage policy are not supported on symlinks"),
    "one that nobody knows": ("/strange", HADOOP_ILLEGAL_ARGUMENT, "of id 3"),
}


@pytest.mark.parametrize("user", ["alice", "hdfs"])
@pytest.mark.parametrize(
    ("path", "java_class", "words"), WITHOUT_POLICY.values(), ids=WITHOUT_POLICY.keys()
)
async def test_what_has_no_storage_policy(
    path: str, java_class: str, words: str, user: str
) -> None:
    served = await namenode_in_memory.linked()
    await served.mkdirs("/strange")
    served.log_and_apply(SetStoragePolicy("/strange", 3))
    with pytest.raises(RemoteFault, match=words) as refusal:
        await served.call("getStoragePolicy", path=path, user=user)
    assert refusal.value.java_class == java_class


CODED: dict[str, str] = {
    "/s": "RS-6-3-1024k",
    "/s/in": "RS-6-3-1024k",
    "/s/f": "",  # older than the policy
    "/d": "",
    "/d/.snapshot": "",
}


@pytest.mark.parametrize(("src", "name"), CODED.items(), ids=CODED.keys())
async def test_a_directory_s_new_files_are_coded_by_the_nearest_policy(src: str, name: str) -> None:
    served = await test_create.prepared()
    await served.call("allowSnapshot", snapshotRoot="/d")
    answer = await served.call("getErasureCodingPolicy", src=src)
    assert isinstance(answer, calls.GetErasureCodingPolicyResponseProto)
    assert (answer.HasField("ecPolicy"), answer.ecPolicy.name) == (bool(name), name)


async def test_all_erasure_coding_policies_are_listed() -> None:
    answer = await namenode_in_memory.serve().call("getErasureCodingPolicies")
    assert isinstance(answer, calls.GetErasureCodingPoliciesResponseProto)
    assert [policy.id for policy in answer.ecPolicies] == [1, 2, 3, 4, 5]


ANSWERS: dict[str, tuple[str, namenode_in_memory.Fields, Message]] = {
    "no encryption zone": ("getEZForPath", {"src": "/d"}, calls.GetEZForPathResponseProto()),
    "no encryption zone of a path without an inode": (
        "getEZForPath",
        {"src": "/none"},
        calls.GetEZForPathResponseProto(),
    ),
    "no zones": (
        "listEncryptionZones",
        {"id": 0},
        calls.ListEncryptionZonesResponseProto(hasMore=False),
    ),
    "the root encloses all": (
        "getEnclosingRoot",
        {"filename": "/d/e"},
        calls.GetEnclosingRootResponseProto(enclosingRootPath="/"),
    ),
    "no token": ("getDelegationToken", {"renewer": "x"}, calls.GetDelegationTokenResponseProto()),
    "no upgrade": ("upgradeStatus", {}, calls.UpgradeStatusResponseProto(upgradeFinalized=True)),
    "nothing to wait for": ("msync", {}, calls.MsyncResponseProto()),
}


@pytest.mark.parametrize(("method", "fields", "answer"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_what_is_not_served_is_told_as_absent(
    method: str, fields: namenode_in_memory.Fields, answer: Message
) -> None:
    served = await namenode_in_memory.prepared()
    assert await served.call(method, **fields) == answer


async def test_a_rolling_upgrade_is_shown_and_neither_begun_nor_ended() -> None:
    served = namenode_in_memory.serve()
    actions = calls.RollingUpgradeActionProto
    assert await served.call("rollingUpgrade", action=actions.QUERY) == (
        calls.RollingUpgradeResponseProto()
    )
    for action in (actions.START, actions.FINALIZE):
        with pytest.raises(RemoteFault, match="begins and ends no rolling upgrade"):
            await served.call("rollingUpgrade", action=action)
    served.log_and_apply(RollingUpgradeStart(1234))
    answer = await served.call("rollingUpgrade", action=actions.QUERY)
    assert isinstance(answer, calls.RollingUpgradeResponseProto)
    assert answer.rollingUpgradeInfo.startTime == 1234
    assert answer.rollingUpgradeInfo.status.blockPoolId == served.cluster.pool
    with pytest.raises(RemoteFault, match="Superuser"):
        await served.call("rollingUpgrade", user="bob", action=actions.QUERY)


async def test_the_last_edit_is_told() -> None:
    served = await namenode_in_memory.prepared()
    answer = await served.call("getCurrentEditLogTxid")
    assert answer == calls.GetCurrentEditLogTxidResponseProto(txid=len(served.log.frames))


@pytest.mark.parametrize("src", ["/none", "/d/none"])
async def test_what_is_not_there_has_no_erasure_coding_policy(src: str) -> None:
    served = await namenode_in_memory.prepared()
    with pytest.raises(RemoteFault, match=f"Path not found: {src}") as refusal:
        await served.call("getErasureCodingPolicy", src=src)
    assert refusal.value.java_class == FILE_NOT_FOUND


ASKED: dict[str, tuple[str, str]] = {
    "the storage policy": ("getStoragePolicy", "path"),
    "the erasure coding policy": ("getErasureCodingPolicy", "src"),
    "the encryption zone": ("getEZForPath", "src"),
    "the enclosing root": ("getEnclosingRoot", "filename"),
}


@pytest.mark.parametrize(("method", "field"), ASKED.values(), ids=ASKED.keys())
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/closed/f", 'user=bob, access=EXECUTE, inode="/closed"'),
        ("/closed", 'user=bob, access=READ, inode="/closed"'),
    ],
    ids=["below a closed directory", "of a closed directory"],
)
async def test_who_may_not_read_a_path_is_told_nothing_of_it(
    method: str, field: str, path: str, words: str
) -> None:
    served = await namenode_in_memory.prepared()
    await served.mkdirs("/closed", 0o700)
    fields: namenode_in_memory.Fields = {field: path}
    with pytest.raises(RemoteFault, match=words) as refusal:
        await served.call(method, user="bob", **fields)
    assert refusal.value.java_class == ACCESS_CONTROL


@pytest.mark.parametrize(
    ("method", "fields"), [("listEncryptionZones", {"id": 0}), ("getCurrentEditLogTxid", {})]
)
async def test_only_the_superuser_asks(method: str, fields: namenode_in_memory.Fields) -> None:
    served = await namenode_in_memory.prepared()
    with pytest.raises(RemoteFault, match="Superuser privilege is required") as refusal:
        await served.call(method, user="bob", **fields)
    assert refusal.value.java_class == ACCESS_CONTROL
