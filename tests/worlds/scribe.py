"""Random edits: numbers that hypothesis draws, made into edits that the model says are valid."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block, Permission, RenameOption, XAttr, XAttrNamespace
from tests.worlds.model_tree import Model, Thing

WHO = Permission("alice", "staff", 0o750)
NAMES = ("a", "b", "é", "Z")
MAX_DEPTH = 5
BLOCK = 100

Draw = Callable[[int], int]
"""A number below a limit."""


@dataclass
class Scribe:
    """Writes edits, and does to the model what they mean."""

    model: Model = field(default_factory=Model)
    written: list[Op] = field(default_factory=list)
    time: int = 1000
    last_number: int = 16385
    last_block: int = 2**30
    last_stamp: int = 1000
    stamps: dict[int, int] = field(default_factory=dict)
    for_hadoop: bool = False
    """Only what its own NameNode takes and does right: no symlinks, which are switched off; and no
    file is deleted while a cut block of it is being copied, which takes the block from snapshots
    too (INode.BlocksMapUpdateInfo.addDeleteBlock).

    Otherwise: no snapshots below a directory that was moved out of an older snapshot.  What is
    deleted of them stays, with Hadoop as with us, until that snapshot goes (findLatestSnapshot
    asks all directories above, whether or not they had this one then)."""

    def now(self) -> int:
        self.time += 10
        return self.time

    def number(self) -> int:
        self.last_number += 1
        return self.last_number

    def block(self) -> Block:
        """Give out a new block, with the edits that number it."""
        self.last_block += 1
        self.write(ops.AllocateBlockId(self.last_block))
        self.stamps[self.last_block] = self.stamp()
        return Block(self.last_block, 0, self.last_stamp)

    def stamp(self) -> int:
        """Give out a new generation stamp, with its edit."""
        self.last_stamp += 1
        self.write(ops.SetGenstampV2(self.last_stamp))
        return self.last_stamp

    def write(self, *edits: Op) -> None:
        self.written.extend(edits)

    def take_written(self) -> list[Op]:
        written, self.written = self.written, []
        return written

    # What follows draws an edit; each does nothing where none of its kind is possible.

    def some(self, draw: Draw, paths: Sequence[str]) -> str | None:
        return paths[draw(len(paths))] if paths else None

    def new_path(self, draw: Draw) -> str | None:
        free = [
            f"{above}/{name}"
            for above in ["", *self.model.paths("directory")]
            for name in NAMES
            if above.count("/") < MAX_DEPTH and name not in self.model.at(above).children
        ]
        return self.some(draw, free)

    def mkdir(self, draw: Draw) -> None:
        path = self.new_path(draw)
        if path is None:
            return
        number, time = self.number(), self.now()
        parent, name = self.model.parent_of(path)
        attributes = {"mode": WHO.mode, "user": WHO.user, "group": WHO.group}
        parent.children[name] = Thing(number, "directory", attributes)
        self.write(ops.Mkdir(number, path, time, time, WHO))

    def symlink(self, draw: Draw) -> None:
        path = self.new_path(draw)
        if path is None or self.for_hadoop:
            return
        number, time = self.number(), self.now()
        parent, name = self.model.parent_of(path)
        attributes = {"mode": 0o777, "user": WHO.user, "group": WHO.group, "target": b"/t"}
        parent.children[name] = Thing(number, "symlink", attributes)
        self.write(ops.Symlink(number, path, "/t", time, time, replace(WHO, mode=0o777)))

    def create(self, draw: Draw) -> None:
        """Write a new file, or one instead of another; often closed at once, with a few blocks."""
        overwrites = draw(4) == 0
        path = self.some(draw, self.model.paths("file")) if overwrites else self.new_path(draw)
        if path is None:
            return
        number, time = self.number(), self.now()
        parent, name = self.model.parent_of(path)
        attributes: dict[str, object] = {
            "mode": WHO.mode,
            "user": WHO.user,
            "group": WHO.group,
            "replication": 3,
            "mtime": time,
            "atime": time,
        }
        parent.children[name] = thing = Thing(number, "file", attributes, open=True)
        add = ops.Add(number, path, 3, time, time, BLOCK, (), WHO, (), (), f"w{draw(3)}", "host")
        self.write(replace(add, overwrite=True) if overwrites else add)
        for _ in range(draw(4)):
            self._add_block(path, thing)
        if draw(4):
            self._close(path, thing, draw(BLOCK) + 1)

    def _add_block(self, path: str, thing: Thing) -> None:
        block = self.block()
        penultimate = None
        if thing.blocks:
            number, had = thing.blocks[-1]
            thing.blocks[-1] = (number, had or BLOCK)
            penultimate = Block(number, had or BLOCK, self.stamps[number])
        thing.blocks.append((block.block_id, 0))
        self.write(ops.AddBlock(path, penultimate, block))

    def _close(self, path: str, thing: Thing, length: int) -> None:
        time = self.now()
        if thing.blocks:
            number, had = thing.blocks[-1]
            thing.blocks[-1] = (number, max(length, had))
        thing.open = False
        thing.attributes |= {"mtime": time, "atime": time}
        blocks = tuple(Block(number, size, self.stamps[number]) for number, size in thing.blocks)
        self.write(ops.Close(0, path, 3, time, time, BLOCK, blocks, WHO))

    def go_on_writing(self, draw: Draw) -> None:
        path = self.some(draw, [p for p in self.model.paths("file") if self.model.at(p).open])
        if path is None:
            return
        thing = self.model.at(path)
        match draw(3):
            case 0:
                self._add_block(path, thing)
            case 1 if thing.blocks:
                number, had = thing.blocks[-1]
                thing.blocks[-1] = (number, max(had, draw(BLOCK) + 1))
                blocks = tuple(Block(one, size, self.stamps[one]) for one, size in thing.blocks)
                self.write(ops.UpdateBlocks(path, blocks))
            case _:
                self._close(path, thing, draw(BLOCK) + 1)

    def append(self, draw: Draw) -> None:
        path = self.some(draw, self._closed())
        if path is None:
            return
        thing = self.model.at(path)
        thing.open = True
        whole = bool(thing.blocks) and thing.blocks[-1][1] < BLOCK and draw(2) == 0
        self.write(ops.Append(path, f"w{draw(3)}", "host", new_block=not whole))
        if not whole and draw(2):
            self._add_block(path, thing)
        if draw(3):
            self._close(path, thing, draw(BLOCK) + 1)

    def _closed(self) -> list[str]:
        return [path for path in self.model.paths("file") if not self.model.at(path).open]

    def truncate(self, draw: Draw) -> None:
        """Cut a file at the end of a block, or inside of one, which a snapshot may need whole."""
        paths = [path for path in self._closed() if self.model.at(path).blocks]
        path = self.some(draw, paths)
        if path is None:
            return
        thing, time = self.model.at(path), self.now()
        length = draw(sum(size for _, size in thing.blocks) + 1)
        kept, total = 0, 0
        while total < length:
            total += thing.blocks[kept][1]
            kept += 1
        del thing.blocks[kept:]
        thing.attributes["mtime"] = time
        cut = total - length
        if not cut:
            self.write(ops.Truncate(path, "cutter", "host", length, time, None))
            return
        thing.open = True
        number, had = thing.blocks[-1]
        if self.model.has_block(number):
            copy = self.block()
            thing.blocks[-1] = (copy.block_id, had - cut)
            self.write(ops.Truncate(path, "cutter", "host", length, time, copy))
            if draw(2) or self.for_hadoop:
                self._close(path, thing, 0)
        else:  # in place: the block keeps its length until its DataNodes have cut it
            target = Block(number, had, self.stamp())
            self.write(ops.Truncate(path, "cutter", "host", length, time, target))
            if draw(2):
                thing.blocks[-1] = (number, had - cut)
                self.stamps[number] = target.generation_stamp
                self._close(path, thing, 0)

    def concat(self, draw: Draw) -> None:
        """Concatenate closed, non-empty files of the target's directory, in no snapshot."""
        target = self.some(draw, [p for p in self._closed() if self.model.at(p).blocks])
        if target is None:
            return
        parent, own = self.model.parent_of(target)
        names = [
            name
            for name, thing in sorted(parent.children.items())
            if name != own and thing.kind == "file" and not thing.open and thing.blocks
            and not self.model.in_any_snapshot(thing.number)
        ]  # fmt: skip
        name = self.some(draw, names)
        if name is None:
            return
        source, thing, time = parent.children.pop(name), self.model.at(target), self.now()
        thing.blocks += source.blocks
        thing.attributes["mtime"] = time
        above = target.rpartition("/")[0]
        self.write(ops.ConcatDelete(target, (f"{above}/{name}",), time))

    def delete(self, draw: Draw) -> None:
        path = self.some(draw, self._movable())
        if path is None:
            return
        parent, name = self.model.parent_of(path)
        self._forget(parent.children.pop(name))
        self.write(ops.Delete(path, self.now()))

    def _movable(self) -> list[str]:
        paths = self.model.paths()
        return [path for path in paths if not self.model.has_snapshots_in(self.model.at(path))]

    def _forget(self, thing: Thing) -> None:
        for number in self.model.snapshottable_in(thing):
            del self.model.snapshots[number]

    def rename(self, draw: Draw) -> None:
        source = self.some(draw, self._movable())
        if source is None:
            return
        moving = self.model.at(source)
        replaces = draw(3) == 0
        if replaces:
            kinds = {True: ["directory"], False: ["file", "symlink"]}[moving.kind == "directory"]
            targets = [
                path
                for path in self._movable()
                if self.model.at(path).kind in kinds and not self.model.at(path).children
            ]
            target = self.some(draw, targets)
        else:
            target = self.new_path(draw)
        if target is None or f"{target}/".startswith(f"{source}/"):
            return
        if self.model.snapshottable_in(moving) and not self._may_have_snapshots(target):
            return
        if f"{source}/".startswith(f"{target}/"):
            return
        parent, name = self.model.parent_of(source)
        new_parent, new_name = self.model.parent_of(target)
        del parent.children[name]
        if replaces:
            self._forget(new_parent.children[new_name])
        new_parent.children[new_name] = moving
        moving.moved = True
        if replaces or draw(2):
            options = (RenameOption.OVERWRITE,) if replaces else ()
            self.write(ops.Rename(source, target, self.now(), options))
        else:
            self.write(ops.RenameOld(source, target, self.now()))

    def _may_have_snapshots(self, target: str) -> bool:
        if self.model.would_nest(target):
            return False
        return self.for_hadoop or not self.model.is_below_moved(target)

    def attributes(self, draw: Draw) -> None:
        paths = [path for path in ["/", *self.model.paths()] if not self._is_link(path)]
        path = self.some(draw, paths)
        assert path is not None
        thing, value = self.model.at(path), draw(4)
        match draw(7):
            case 0:
                thing.attributes["mode"] = 0o700 + value
                self.write(ops.SetPermissions(path, 0o700 + value))
            case 1:
                thing.attributes["user"] = f"user{value}"
                self.write(ops.SetOwner(path, f"user{value}", ""))
            case 2:
                thing.attributes["xattrs"] = f"v{value}".encode()
                xattr = XAttr(XAttrNamespace.USER, "x", f"v{value}".encode())
                self.write(ops.SetXAttr(path, (xattr,)))
            case 3 if "xattrs" in thing.attributes:
                del thing.attributes["xattrs"]
                xattr = XAttr(XAttrNamespace.USER, "x", None)
                self.write(ops.RemoveXAttr(path, (xattr,)))
            case 4 if thing.kind == "file":
                thing.attributes["replication"] = value + 1
                self.write(ops.SetReplication(path, value + 1))
            case 5 if thing.kind == "file":
                time = self.now()
                thing.attributes |= {"mtime": time, "atime": time + 1}
                self.write(ops.Times(path, time, time + 1))
            case 6 if thing.kind == "directory" and path != "/":
                thing.attributes["quota"] = 1000 + value
                self.write(ops.SetQuota(path, 1000 + value, -1))
            case _:
                thing.attributes["group"] = f"group{value}"
                self.write(ops.SetOwner(path, "", f"group{value}"))

    def policy(self, draw: Draw) -> None:
        """Give a file or a directory a storage policy, or take it away."""
        path = self.some(draw, [path for path in self.model.paths() if not self._is_link(path)])
        if path is not None:
            number = (0, 2, 7, 12)[draw(4)]
            self.model.at(path).attributes["policy"] = number
            self.write(ops.SetStoragePolicy(path, number))

    def _is_link(self, path: str) -> bool:
        return path != "/" and self.model.at(path).kind == "symlink"
