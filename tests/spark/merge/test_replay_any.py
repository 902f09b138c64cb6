"""Any log over few names: names come, go and move all the time, and nothing is what it seems."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from namenode_sim.edits import ops
from namenode_sim.edits.values import Permission
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from spark.merge.plan import rounds
from tests.spark.merge.script import Script

NAME = st.sampled_from(["a", "b", "é"])
PATH = st.lists(NAME, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
KIND = st.sampled_from(
    [
        "mkdir",
        "create",
        "overwrite",
        "open",
        "delete",
        "rename",
        "rename",
        "rename_old",
        "rename_old",
        "replace",
        "mode",
        "concat",
        "symlink",
    ]
)
STEP = st.tuples(KIND, PATH, PATH)


def _step(s: Script, kind: str, path: str, other: str) -> None:  # noqa: C901 - flat dispatch
    """Log the edit, if a NameNode could have logged it here; some may do nothing."""
    tree = s.namespace.tree
    node, there = tree.find(path), tree.find(other)
    parent, _ = tree.parent_of(path)
    to, _ = tree.parent_of(other)
    match kind:
        case "delete":
            s.delete(path)
        case "rename_old":
            s.rename_old(path, other)
        case "mkdir" if parent is not None:
            s.mkdirs(path)
        case "create" | "open" if parent is not None and node is None:
            s.files(path) if kind == "create" else s.open(path)
        case "symlink" if parent is not None and node is None:
            number = s.namespace.counters.last_inode_id + 1
            s.write(ops.Symlink(number, path, "/b", 1, 2, Permission("u", "g", 0o777)))
        case "overwrite" if parent is not None and (node is None or isinstance(node, INodeFile)):
            s.files(path, overwrite=True)
        case "mode" if node is not None:
            s.write(ops.SetPermissions(path, 0o700))
        case "rename" | "replace" if node is not None and to is not None:
            if f"{other}/".startswith(f"{path}/") or (kind == "rename" and there is not None):
                return
            if there is not None and (
                isinstance(there, INodeDirectory) != isinstance(node, INodeDirectory)
                or (isinstance(there, INodeDirectory) and there.children)
            ):
                return
            s.rename(path, other, overwrite=kind == "replace")
        case "concat" if isinstance(node, INodeFile) and isinstance(there, INodeFile):
            closed = node.under_construction is None and there.under_construction is None
            if closed and node is not there and node.parent is there.parent:
                s.write(ops.ConcatDelete(path, (other,), s.now))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(st.lists(STEP, max_size=25), st.lists(STEP, min_size=1, max_size=25))
def test_any_log_gives_what_the_whole_namespace_gives(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]
) -> None:
    script = Script()
    for step in before:
        _step(script, *step)
    script.image()
    for step in after:
        _step(script, *step)
    assert script.check().rounds <= rounds.MOST_ROUNDS
