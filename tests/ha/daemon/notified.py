"""The other end of sd_notify(3): what systemd would hear."""

import socket
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 60.0


class Manager:
    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.heard: list[str] = []

    def hear(self, wanted: Callable[[str], bool]) -> None:
        while True:
            self.heard.append(self.socket.recv(4096).decode())
            if wanted(self.heard[-1]):
                return
