"""Questions to whoever sits at the terminal."""

import sys
from collections.abc import Mapping

import click


def confirmed(question: str) -> bool:
    """Ask until the answer is yes or no; the end of input is a no, where Hadoop asks for ever."""
    return ask_letter(question, {"y": "yes", "n": "no"}, at_end="n") == "y"


def ask_letter(question: str, choices: Mapping[str, str], *, at_end: str) -> str:
    """Ask until the answer is one of these letters, or what it stands for.

    ``at_end`` is the answer where the input has ended.
    """
    while True:
        click.echo(question, err=True)
        line = sys.stdin.readline()
        word = line.strip().lower()
        for letter, meaning in choices.items():
            if word and word in (letter, meaning):
                return letter
        if not line:
            return at_end
        click.echo(f"Please answer {' or '.join(letter.upper() for letter in choices)}.", err=True)
