"""What a remote shell proves: an answer counts only behind a word that it worked out itself.

A login shell may refuse every command (nologin, a forced command), may repeat the command in its
refusal, and its start files may print numbers.  None of that is an answer.

See docs/reference/fencing.md#what-the-remote-shell-proves.
"""

import re
import secrets
import shlex
from typing import Final

from ha.record import dataclass

MAX_ANSWER_BYTES: Final = 64 * 1024
"""Only the end of a longer output is searched for the answer."""
_SURROUNDINGS: Final = (
    'PATH="$PATH:/sbin:/usr/sbin"; LC_ALL=C; LANGUAGE=C; export PATH LC_ALL LANGUAGE; set -f'
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A command's exit status and what it wrote, its words separated by one space."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Nonce:
    """What the shell of one ssh session has to work out; drawn at random for each session."""

    word: str
    first: int
    second: int

    def script(self, command: str) -> str:
        """Return the line that runs a command in ``sh`` and prints its answer behind the marker.

        Any login shell can start it (csh and fish, too): no quotes but one pair.  The sum is not
        in the line, so that a refusal which repeats the line does not have the marker.
        """
        asked = f"o=$({command}); s=$?"
        marked = f"echo {self.word}-$(({self.first}+{self.second})) $s $o {self.word}-end"
        return f"sh -c {shlex.quote(f'{_SURROUNDINGS}; {asked}; {marked}')}"

    def answer_in(self, output: bytes) -> Answer | None:
        """Return the answer in what the session wrote so far; None while there is none.

        What stands before and behind it, on the same line too, is not looked at.
        """
        found = re.search(
            rf"{re.escape(self._marker)} (\d{{1,3}}) (.*?) ?{re.escape(self.word)}-end",
            output.decode("utf-8", "replace"),
        )
        return None if found is None else Answer(int(found[1]), found[2])

    def noise_in(self, output: bytes) -> str:
        """Return what the session wrote before its answer, or without one."""
        return output.decode("utf-8", "replace").partition(self._marker)[0]

    @property
    def _marker(self) -> str:
        return f"{self.word}-{self.first + self.second}"


def new_nonce() -> Nonce:
    """Return one that no other session has: what that one wrote cannot answer for this one."""
    return Nonce(secrets.token_hex(8), secrets.randbelow(10**6), 10**6)
