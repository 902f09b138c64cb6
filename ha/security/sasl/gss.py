"""The only door to the system's Kerberos library, libgssapi_krb5, by ctypes.

Every buffer of the library is copied and released in the same function; names, credentials and
contexts are released with the objects that hold them.  All calls but those of a finished context
may read files and ask the network: they belong in a thread.
"""

import ctypes as c
import os
from ctypes import byref
from functools import cache
from typing import Final

LIBRARY: Final = "libgssapi_krb5.so.2"
INSTALL: Final = (
    f"Kerberos needs the system's {LIBRARY}: apt-get install libgssapi-krb5-2 (Debian, Ubuntu), or "
    "dnf install krb5-libs (RHEL, Fedora)"
)

MUTUAL: Final = 2
REPLAY: Final = 4
SEQUENCE: Final = 8
CONFIDENTIAL: Final = 16
INTEGRITY: Final = 32
ANONYMOUS: Final = 64

_CONTINUE: Final = 1
_NOT_NEXT: Final = 0x1E
"""Supplementary bits of a successful unwrap: the token is doubled, old, too early, or one lacks."""
_INITIATE: Final = 1
_ACCEPT: Final = 2
_INDEFINITE: Final = 0xFFFFFFFF

_u32, _p = c.c_uint32, c.c_void_p


class GssError(Exception):
    """The library refused; ``str`` is its text, which is for logs and operators alone."""


class _Buffer(c.Structure):
    _fields_ = (("length", c.c_size_t), ("value", _p))


class _Given(c.Structure):
    """The same with bytes of ours, which the library does not keep."""

    _fields_ = (("length", c.c_size_t), ("value", c.c_char_p))


class _Oid(c.Structure):
    _fields_ = (("length", _u32), ("elements", _p))


class _OidSet(c.Structure):
    _fields_ = (("count", c.c_size_t), ("elements", c.POINTER(_Oid)))


class _Pair(c.Structure):
    _fields_ = (("key", c.c_char_p), ("value", c.c_char_p))


class _Pairs(c.Structure):
    _fields_ = (("count", _u32), ("elements", c.POINTER(_Pair)))


def _oid(numbers: str) -> tuple[_Oid, object]:
    data = bytes.fromhex(numbers)
    kept = c.create_string_buffer(data, len(data))
    return _Oid(len(data), c.cast(kept, _p)), kept


_KRB5, _KRB5_BYTES = _oid("2a864886f712010202")
_PRINCIPAL, _PRINCIPAL_BYTES = _oid("2a864886f71201020201")
_KRB5_ONLY: Final = _OidSet(1, c.pointer(_KRB5))


@cache
def _library() -> c.CDLL:
    # A replayed AP-REQ cannot finish a handshake of ours: its layer message has to be wrapped under
    # the acceptor's fresh subkey.  The cache would sync a file for each handshake instead.
    os.environ.setdefault("KRB5RCACHENAME", "none:")
    try:
        return c.CDLL(LIBRARY)
    except OSError as failure:
        raise GssError(f"{INSTALL} ({failure})") from failure


def _call(name: str, *arguments: object) -> int:
    """Call a function; return its status.  Raises GssError if that is an error."""
    minor, function = _u32(), getattr(_library(), f"gss_{name}")
    function.restype = _u32
    # All arguments are pointers, handles and numbers of 32 bits: they need no prototype.
    status: int = function(byref(minor), *arguments)
    if status >> 16:
        texts = (*_status_texts(status, 1), *_status_texts(minor.value, 2))
        raise GssError(": ".join(dict.fromkeys(texts)) or f"status {status:#x}")
    return status


def _status_texts(code: int, kind: int) -> list[str]:
    out, more = _Buffer(), _u32()
    _library().gss_display_status(
        byref(_u32()), _u32(code), kind, byref(_KRB5), byref(more), byref(out)
    )
    text = _taken(out).decode("utf-8", "replace")
    return [text] if text else []


def _given(data: bytes) -> _Given:
    return _Given(len(data), data)


def _taken(out: _Buffer) -> bytes:
    data = c.string_at(out.value, out.length) if out.value and out.length else b""
    _library().gss_release_buffer(byref(_u32()), byref(out))
    return data


class Name:
    """A Kerberos principal, as the library knows it."""

    def __init__(self, handle: c.c_void_p) -> None:
        self.handle = handle

    @classmethod
    def of(cls, principal: str) -> "Name":
        """Return the name of a principal.  Raises GssError if the text is none."""
        data, found = principal.encode(), _p()
        _call("import_name", byref(_given(data)), byref(_PRINCIPAL), byref(found))
        return cls(found)

    def __str__(self) -> str:
        out = _Buffer()
        _call("display_name", self.handle, byref(out), None)
        return _taken(out).decode("utf-8", "surrogateescape")

    def __del__(self) -> None:
        if self.handle.value:
            _library().gss_release_name(byref(_u32()), byref(self.handle))


def default_realm() -> str:
    """Return the realm of names without one, as krb5.conf has it.  Raises GssError."""
    anybody, found = Name.of("x"), _p()
    _call("canonicalize_name", anybody.handle, byref(_KRB5), byref(found))
    return str(Name(found)).rpartition("@")[2]


class Credentials:
    """The keys with which contexts are accepted, or the tickets with which they are begun."""

    def __init__(self, handle: c.c_void_p, seconds: int | None) -> None:
        self.handle = handle
        self.seconds = seconds
        """For how long they are good; None: for ever."""

    @classmethod
    def to_accept(cls, principal: str, keytab: str) -> "Credentials":
        """Return the keys of a service.  Raises GssError where the keytab has none."""
        return cls._acquired(principal, _ACCEPT, {"keytab": f"FILE:{keytab}"})

    @classmethod
    def of_keytab(cls, principal: str, keytab: str) -> "Credentials":
        """Log a service in with its keytab; no file keeps its tickets.  Raises GssError."""
        store = {"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:{principal}"}
        return cls._acquired(principal, _INITIATE, store)

    @classmethod
    def of_person(cls) -> "Credentials":
        """Return the tickets that kinit has fetched.  Raises GssError if there are none."""
        return cls._acquired(None, _INITIATE, {})

    @classmethod
    def _acquired(cls, principal: str | None, usage: int, store: dict[str, str]) -> "Credentials":
        pairs = (_Pair * len(store))(
            *(_Pair(key.encode(), os.fsencode(value)) for key, value in store.items())
        )
        name = None if principal is None else Name.of(principal)
        found, seconds = _p(), _u32()
        _call(
            "acquire_cred_from", name and name.handle, _u32(_INDEFINITE), byref(_KRB5_ONLY), usage,
            byref(_Pairs(len(store), pairs)), byref(found), None, None,
        )  # fmt: skip
        made = cls(found, None)
        if usage == _INITIATE:
            # A keytab's first tickets are fetched here, so that a failure is seen here, too.
            _call("inquire_cred", found, None, byref(seconds), None, None)
            made.seconds = None if seconds.value == _INDEFINITE else seconds.value
        return made

    @property
    def principal(self) -> str:
        """Whose they are."""
        found = _p()
        _call("inquire_cred", self.handle, byref(found), None, None, None)
        return str(Name(found))

    def __del__(self) -> None:
        if self.handle.value:
            _library().gss_release_cred(byref(_u32()), byref(self.handle))


class Context:
    """One negotiation between two principals, and then what protects their messages."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._handle = _p()
        self._flags = _u32()
        self.complete = False
        self.initiator = ""
        """The principal of the side that began; known to the other side once complete."""

    def has(self, flags: int) -> bool:
        """Return whether the context has all these properties."""
        return self._flags.value & flags == flags

    def accept(self, token: bytes) -> bytes:
        """Take the initiator's token; return ours, perhaps empty.  Raises GssError."""
        source, out = _p(), _Buffer()
        try:
            status = _call(
                "accept_sec_context", byref(self._handle), self._credentials.handle,
                byref(_given(token)), None, byref(source), None, byref(out), byref(self._flags),
                None, None,
            )  # fmt: skip
        finally:
            name, answer = Name(source), _taken(out)
        self.complete = not status & _CONTINUE
        if self.complete:
            self.initiator = str(name)
        return answer

    def init(self, target: Name, flags: int, token: bytes) -> bytes:
        """Take the acceptor's token, at first none; return ours.  Raises GssError."""
        out = _Buffer()
        try:
            status = _call(
                "init_sec_context", self._credentials.handle, byref(self._handle), target.handle,
                byref(_KRB5), flags, 0, None, byref(_given(token)) if token else None, None,
                byref(out), byref(self._flags), None,
            )  # fmt: skip
        finally:
            answer = _taken(out)
        self.complete = not status & _CONTINUE
        return answer

    def wrap(self, data: bytes, *, encrypt: bool) -> bytes:
        """Protect a message for the peer.  Raises GssError."""
        encrypted, out = c.c_int(), _Buffer()
        try:
            _call(
                "wrap", self._handle, encrypt, 0, byref(_given(data)), byref(encrypted), byref(out)
            )
        finally:
            token = _taken(out)
        if encrypt and not encrypted.value:
            raise GssError("the library did not encrypt")
        return token

    def unwrap(self, token: bytes, *, encrypted: bool) -> bytes:
        """Return the peer's next message; ``encrypted``: it must be.  Raises GssError."""
        was_encrypted, out = c.c_int(), _Buffer()
        try:
            status = _call(
                "unwrap", self._handle, byref(_given(token)), byref(out), byref(was_encrypted), None
            )
        finally:
            data = _taken(out)
        if status & _NOT_NEXT:
            raise GssError(f"a message is lost, repeated or out of order (status {status:#x})")
        if encrypted and not was_encrypted.value:
            raise GssError("a message is not encrypted")
        return data

    def longest_text(self, token_bytes: int, *, encrypt: bool) -> int:
        """Return how long a message may be whose token is to fit.  Raises GssError."""
        found = _u32()
        _call("wrap_size_limit", self._handle, encrypt, 0, token_bytes, byref(found))
        return found.value

    def __del__(self) -> None:
        if self._handle.value:
            _library().gss_delete_sec_context(byref(_u32()), byref(self._handle), None)
