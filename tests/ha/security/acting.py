"""Calls others under a certificate for a while, as a daemon does for all its life."""

from collections.abc import Iterator
from contextlib import contextmanager

from ha.conf.keys.security import Mode
from ha.security.own_tls import act_as, own_tls
from ha.security.tls_files import TlsFiles


@contextmanager
def acting_as(files: TlsFiles, mode: Mode = Mode.AUTO) -> Iterator[None]:
    before = own_tls()
    act_as(files, mode)
    try:
        yield
    finally:
        plain_too = before is not None and before.plain_too
        act_as(
            None if before is None else before.files, Mode.PERMISSIVE if plain_too else Mode.AUTO
        )
