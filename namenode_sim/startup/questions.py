"""How a start-up command asks before it does what cannot be undone."""

from collections.abc import Callable, Mapping

from ha.daemon.process import ExitWith
from ha.record import dataclass

Ask = Callable[[str], bool]
"""Puts a question to the operator; True is yes.  The end of input is a no."""


Choose = Callable[[str, Mapping[str, str]], str]
"""Shows a trouble and what may be done about it, by letter; gives the letter."""


@dataclass(frozen=True, slots=True)
class Consent:
    """What the command line says about questions: -force answers yes, -nonInteractive no."""

    force: bool
    ask: Ask | None

    def given(self, question: str) -> bool:
        if self.force:
            return True
        return self.ask is not None and self.ask(question)

    def require(self, question: str, *, code: int, refusal: str) -> None:
        """Go on only if the operator agrees.

        Raises:
            ExitWith: with ``code`` and ``refusal`` if not.
        """
        if not self.given(question):
            raise ExitWith(code, refusal)
