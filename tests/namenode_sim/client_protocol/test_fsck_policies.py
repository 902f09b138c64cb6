"""fsck -storagepolicies: which blocks lie on the types of storage that their policy names."""

import pytest

from namenode_sim.datanodes.model import StorageType
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.test_fsck import damaged, losing, site

#   the policy, the types of the three storages, and how the summary names both; None is "as wanted"
PLACEMENTS = {
    "hot on disks": ("HOT", "DISK DISK DISK", "DISK:3(HOT)", None),
    "cold on disks": ("COLD", "DISK DISK DISK", "DISK:3(HOT)", "COLD"),
    "warm, more in the archive": (
        "WARM",
        "ARCHIVE DISK ARCHIVE",
        "DISK:1,ARCHIVE:2(WARM)",
        None,
    ),
    "warm, more on disks": ("WARM", "ARCHIVE DISK DISK", "DISK:2,ARCHIVE:1", "WARM"),
    "one on an SSD": ("ONE_SSD", "DISK SSD DISK", "SSD:1,DISK:2(ONE_SSD)", None),
    "two on an SSD": ("ONE_SSD", "SSD SSD DISK", "SSD:2,DISK:1", "ONE_SSD"),
    "hot in memory": ("HOT", "RAM_DISK DISK DISK", "RAM_DISK:1,DISK:2(LAZY_PERSIST)", "HOT"),
    "all of another type": ("ALL_NVDIMM", "NVDIMM NVDIMM NVDIMM", "NVDIMM:3(ALL_NVDIMM)", None),
    "a corrupt one does not count": ("HOT", "DISK DISK -ARCHIVE", "DISK:2(HOT)", None),
    "all are corrupt": ("COLD", "-ARCHIVE -ARCHIVE -ARCHIVE", "ARCHIVE:3(COLD)", None),
    "none is left": ("HOT", "", "", "HOT"),
}


@pytest.mark.parametrize(("policy", "kinds", "name", "wanted"), PLACEMENTS.values(), ids=PLACEMENTS)
async def test_the_types_of_storage_are_compared_with_the_policy(
    policy: str, kinds: str, name: str, wanted: str | None
) -> None:
    here = await site()
    await here.served.call("setStoragePolicy", src="/d", policyName=policy)
    for node, kind in zip(here.served.cluster.nodes, kinds.split(), strict=False):
        (storage,) = here.served.cluster.nodes[node].storages.values()
        storage.type = StorageType[kind.lstrip("-")]
        if kind.startswith("-"):
            damaged(node)(here.served, here.block)
    if not kinds:
        losing("d1", "d2", "d3")(here.served, here.block)
    text = here.text("/", "storagepolicies")
    share = f"{1:>11}{'100.0000%':>22}\n"
    line = f"{name:<25}{share}" if wanted is None else f"{name:<35} {wanted:<20}{share}"
    heads = [text.index("\nBlocks satisfying the specified storage policy:\n")]
    other = "NOT satisfying" if wanted else "All blocks satisfy specified storage policy."
    heads.append(text.index(other))
    assert text.count(f"\n{line}") == 1
    assert (heads[1] < text.index(line)) is (wanted is not None)
    assert "storage policy" not in here.text("/")


async def test_the_most_frequent_placement_stands_first_and_open_files_do_not_count() -> None:
    here = await site()
    await here.served.mkdirs("/cold")
    await datanodes_in_memory.written(here.served, "/cold/f", 10)
    await here.served.call("setStoragePolicy", src="/cold", policyName="COLD")
    await datanodes_in_memory.written(here.served, "/d/g", 10)
    await here.served.create("/d/open")
    await datanodes_in_memory.add_block(here.served, "/d/open")
    text = here.text("/", "storagepolicies", "openforwrite")
    table = text[text.index("\nBlocks satisfying") :].splitlines()
    assert table[3].split() == ["DISK:3(HOT)", "2", "66.6667%"]
    assert table[7].split() == ["DISK:3(HOT)", "COLD", "1", "33.3333%"]
