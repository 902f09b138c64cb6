"""Runs a command in a remote shell so that its answer cannot be confused with other output.

A login shell may refuse all commands (nologin, a forced command), repeat the command in its error
message, or print text from its start files.  The answer stands behind a marker that contains a sum,
which only a shell that executes the command can compute.

See docs/reference/fencing.md#what-the-remote-shell-proves.
"""

import re
import secrets
import shlex
from typing import Final

from ha.record import dataclass

MAX_ANSWER_BYTES: Final = 64 * 1024
"""Of a longer output only the end is searched for the answer."""
_SURROUNDINGS: Final = (
    'PATH="$PATH:/sbin:/usr/sbin"; LC_ALL=C; LANGUAGE=C; export PATH LC_ALL LANGUAGE; set -f'
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A command's exit status and output, whose words are separated by one space."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Nonce:
    """The random word and summands of the marker, new for each ssh session."""

    word: str
    first: int
    second: int

    def script(self, command: str) -> str:
        """Return the line that runs a command in ``sh`` and prints its answer behind the marker.

        Every login shell can run it, csh and fish included, as it has one pair of quotes only.  A
        refusal that repeats the line has no marker, since the sum is not in the line.
        """
        asked = f"o=$({command}); s=$?"
        marked = f"echo {self.word}-$(({self.first}+{self.second})) $s $o {self.word}-end"
        return f"sh -c {shlex.quote(f'{_SURROUNDINGS}; {asked}; {marked}')}"

    def answer_in(self, output: bytes) -> Answer | None:
        """Return the answer in the session's output so far; None if there is none.

        Text before and after it, even in the same line, is ignored.
        """
        found = re.search(
            rf"{re.escape(self._marker)} (\d{{1,3}}) (.*?) ?{re.escape(self.word)}-end",
            output.decode("utf-8", "replace"),
        )
        return None if found is None else Answer(int(found[1]), found[2])

    def noise_in(self, output: bytes) -> str:
        """Return the output before the answer, or all of it without one."""
        return output.decode("utf-8", "replace").partition(self._marker)[0]

    @property
    def _marker(self) -> str:
        return f"{self.word}-{self.first + self.second}"


def new_nonce() -> Nonce:
    """Return a nonce that differs from that of every other session."""
    return Nonce(secrets.token_hex(8), secrets.randbelow(10**6), 10**6)
