"""Fuzz one target with atheris; started by ``fuzz`` with libFuzzer's options behind the name."""

import sys
from contextlib import suppress

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

with atheris.instrument_imports():
    from tests.campaigns.soak.fuzz_targets import TARGETS


def main(arguments: list[str]) -> None:
    """Fuzz, and do not return: libFuzzer ends the process."""
    name, *options = arguments[1:]
    (target,) = (target for target in TARGETS if target.name == name)

    def feed(data: bytes) -> None:
        with suppress(*target.errors):
            target.run(data)

    atheris.Setup([arguments[0], *options], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
