"""``--recover``: load what damaged edits still hold, the operator deciding at each trouble.

The namespace is saved as an image behind the last edit that ever was, so that no number is used
twice; damaged local files are kept as ``.damaged``, and the JournalNodes' files are not touched.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from enum import StrEnum
from pathlib import Path
from typing import Final, assert_never

import structlog

from ha.conf.configuration import Configuration
from ha.console.exit_codes import UNEXPECTED
from ha.daemon.process import ExitWith
from ha.record import dataclass, field
from hadoop.durable import rename_durably
from journal.errors import JournalError, NotFormatted
from journal.links.quorum_call import ask_once
from journal.links.remote_node import JournalAddress
from journal.model import JournalId, TxId
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup import identity, recovery_items
from namenode_sim.startup.beside_active import refuse_active
from namenode_sim.startup.questions import Choose
from namenode_sim.storage.storage import NameStorage, open_name_dirs

log = structlog.get_logger()

STATUS_SECONDS: Final = 10.0
_ALL: Final = TxId(2**63 - 1)
"""A trouble whose end is unknown accounts for all that is missing before the next edit."""


class OperatorAnswer(StrEnum):
    """What to do about a trouble; the letters are Hadoop's."""

    CONTINUE = "c"
    STOP = "s"
    QUIT = "q"
    ALWAYS = "a"


CHOICES: Final[Mapping[str, str]] = {
    OperatorAnswer.CONTINUE: "continue without what is lost here",
    OperatorAnswer.STOP: "stop here, and drop all later edits",
    OperatorAnswer.QUIT: "quit without saving anything",
    OperatorAnswer.ALWAYS: "continue here and at every later problem",
}


@dataclass(slots=True)
class Recovery:
    """The decisions so far.  An edit that fails to apply spoils the namespace, so everything is
    read again from the image with the decisions that were made.
    """

    choose: Choose
    always: bool = False
    decided: dict[str, OperatorAnswer] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    def decide(self, trouble: str) -> OperatorAnswer:
        """Return the operator's answer to one trouble; asked once.

        Raises:
            ExitWith: 0 on quit, as in Hadoop: it was asked for.
        """
        if trouble not in self.decided:
            log.warning("recovery.trouble", what=trouble)
            self.troubles.append(trouble)
            answer = (
                OperatorAnswer.CONTINUE
                if self.always
                else OperatorAnswer(self.choose(trouble, CHOICES))
            )
            if answer is OperatorAnswer.ALWAYS:
                self.always, answer = True, OperatorAnswer.CONTINUE
            if answer is OperatorAnswer.QUIT:
                raise ExitWith(0, "recovery was quit as requested; nothing was changed.")
            self.decided[trouble] = answer
        return self.decided[trouble]


class _Again(Exception):
    """The namespace is spoiled; read again with what has been decided."""


async def recover(conf: Configuration, place: identity.NameNodeIdentity, recovery: Recovery) -> str:
    """Read, ask, save; a sentence about what became of it.

    Raises:
        ExitWith: when it is refused, given up, or nothing can be read.
        StorageError, ImageError: if the name directory or its image cannot be used.
    """
    await refuse_active(
        place,
        code=UNEXPECTED,
        because="so its namespace is complete; nothing was changed. Copy it instead: "
        "nnha namenode --bootstrap-standby --force.",
    )
    storage = open_name_dirs(
        identity.name_directories(conf, place.address), identity.storage_settings(conf)
    )
    try:
        directories = identity.edits_directories(conf, place.address)
        copies = recovery_items.best_copies(directories, storage.load().last_applied)
        while True:
            try:
                namespace, last = await _read(conf, place, storage, copies, recovery)
            except _Again:
                continue
            break
        if last > namespace.last_applied:
            # The numbers of dropped edits are spent: a new edit never takes one of them.
            namespace.last_applied = last
        image = storage.save(namespace)
        storage.write_seen_txid(namespace.last_applied)
        kept = [_set_aside(copy) for copy in copies if copy.damaged]
    finally:
        storage.close()
    return _summary(recovery, image, kept)


def _summary(recovery: Recovery, image: Path, kept: list[str]) -> str:
    lines = [f"{len(recovery.troubles)} problems were found; the namespace is saved as {image}."]
    if kept:
        lines.append(f"Damaged files are kept: {', '.join(kept)}.")
    if recovery.troubles:
        lines.append(
            "Bootstrap every other NameNode from this one before you start it: "
            "nnha namenode --bootstrap-standby --force."
        )
    return " ".join(lines)


async def _read(
    conf: Configuration,
    place: identity.NameNodeIdentity,
    storage: NameStorage,
    copies: list[recovery_items.Copy],
    recovery: Recovery,
) -> tuple[Namespace, TxId]:
    """Return the namespace as far as readable, and the last transaction that ever was."""
    namespace = storage.load()
    last = max([namespace.last_applied, *(copy.last for copy in copies)])
    go_on = await _apply(namespace, _from_local(copies), recovery)
    reader = identity.journal_reader(conf, place, storage.namespace_info)
    try:
        end = await reader.last_known()
        if go_on and end > namespace.last_applied:
            items = recovery_items.shared_items(reader, TxId(namespace.last_applied + 1))
            go_on = await _apply(namespace, items, recovery)
        last = max(last, end)
    except JournalError as failure:
        if not await _no_journal_exists(place):
            raise ExitWith(
                UNEXPECTED,
                f"the journal cannot be read, and nothing was changed: {failure}. Start a "
                "majority of the JournalNodes that have it first.",
            ) from failure
    finally:
        await reader.close()
    seen = storage.seen_txid
    if go_on and seen > max(last, namespace.last_applied):
        recovery.decide(
            f"the edits end at {namespace.last_applied}, but seen_txid says that {seen} was written"
        )
    return namespace, TxId(max(last, seen))


async def _no_journal_exists(place: identity.NameNodeIdentity) -> bool:
    """Return whether there is no journal yet, as before ``--initialize-shared-edits``.

    All nodes must say so: the edits may be on the one that is left of three.
    """
    journal = JournalAddress(JournalId(place.journal.journal_id), place.address.nameservice)
    answers = await ask_once(
        place.journal_nodes, journal, lambda remote: remote.status(STATUS_SECONDS)
    )
    return all(isinstance(answer, NotFormatted) for answer in answers.values())


async def _from_local(copies: list[recovery_items.Copy]) -> AsyncGenerator[recovery_items.Item]:
    for item in recovery_items.local_items(copies):
        yield item


async def _apply(
    namespace: Namespace, items: AsyncGenerator[recovery_items.Item], recovery: Recovery
) -> bool:
    """Apply what can be applied; False if the operator said stop."""
    async with aclosing(items) as all_items:
        return await _apply_all(namespace, all_items, recovery)


async def _apply_all(
    namespace: Namespace, items: AsyncIterator[recovery_items.Item], recovery: Recovery
) -> bool:
    excused = TxId(0)  # what is missing up to here has been decided about
    async for item in items:
        match item:
            case recovery_items.Trouble():
                if item.last is not None and item.last <= namespace.last_applied:
                    continue
                if recovery.decide(str(item)) is OperatorAnswer.STOP:
                    return False
                excused = max(excused, _ALL if item.last is None else item.last)
            case recovery_items.Edit():
                if item.txid <= namespace.last_applied:
                    continue
                expected = max(namespace.last_applied, excused) + 1
                if item.txid > expected:
                    gap = f"{item.where}: transactions {expected} to {item.txid - 1} are missing"
                    if recovery.decide(gap) is OperatorAnswer.STOP:
                        return False
                excused = TxId(0)
                if not _apply_one(namespace, item, recovery):
                    return False
            case _:
                assert_never(item)
    return True


def _apply_one(namespace: Namespace, item: recovery_items.Edit, recovery: Recovery) -> bool:
    """Apply an edit, or leave it out if that was decided; False on stop."""
    name = f"{item.where}: transaction {item.txid}, {type(item.op).__name__}, cannot be applied"
    known = next((a for t, a in recovery.decided.items() if t.startswith(name)), None)
    if known is OperatorAnswer.STOP:
        return False
    namespace.last_applied = TxId(item.txid - 1)
    if known is None:
        try:
            namespace.apply(item.txid, item.op)
        except ApplyError as problem:
            recovery.decide(f"{name}: {problem}")
            raise _Again from problem
    namespace.last_applied = item.txid
    return True


def _set_aside(copy: recovery_items.Copy) -> str:
    kept = copy.path.with_name(f"{copy.path.name}.damaged")
    rename_durably(copy.path, kept)
    return str(kept)
