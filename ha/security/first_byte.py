"""How a connection over TLS begins."""

from typing import Final

TLS_FIRST_BYTE: Final = 0x16
"""Of every TLS connection; nothing that we serve in plain begins with it."""
