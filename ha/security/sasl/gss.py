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
_OUT: Final = object()

_u32, _p = c.c_uint32, c.c_void_p


class GssError(Exception):
    """The library refused; ``str`` is its text, which is for logs and operators alone."""


class _Buffer(c.Structure):
    _fields_ = (("length", c.c_size_t), ("value", _p))


class _Given(c.Structure):
    """The same with bytes of ours, which the library does not keep."""

    _fields_ = (("length", c.c_size_t), ("value", c.c_char_p))


class _Oid(c.Structure):
    _fields_ = (("length", _u32), ("elements", c.c_char_p))


class _OidSet(c.Structure):
    _fields_ = (("count", c.c_size_t), ("elements", c.POINTER(_Oid)))


class _Pair(c.Structure):
    _fields_ = (("key", c.c_char_p), ("value", c.c_char_p))


class _Pairs(c.Structure):
    _fields_ = (("count", _u32), ("elements", c.POINTER(_Pair)))


_KRB5 = _Oid(9, bytes.fromhex("2a864886f712010202"))
_SPNEGO = _Oid(6, bytes.fromhex("2b0601050502"))
_PRINCIPAL = _Oid(10, bytes.fromhex("2a864886f71201020201"))
_KRB5_ONLY: Final = _OidSet(1, c.pointer(_KRB5))
_BOTH = (_Oid * 2)(_KRB5, _SPNEGO)
_KRB5_ALSO_NEGOTIATED: Final = _OidSet(2, c.cast(_BOTH, c.POINTER(_Oid)))


@cache
def library() -> c.CDLL:
    """Return the library, loaded once.  Raises GssError where this machine has none."""
    # A replayed AP-REQ cannot finish a handshake of ours: its layer message has to be wrapped under
    # the acceptor's fresh subkey.  The cache would sync a file for each handshake instead.
    os.environ.setdefault("KRB5RCACHENAME", "none:")
    try:
        return c.CDLL(LIBRARY)
    except OSError as failure:
        raise GssError(f"{INSTALL} ({failure})") from failure


def _call(name: str, *arguments: object) -> int:
    """Call a function; return its status.  Raises GssError if that is an error."""
    minor, function = _u32(), getattr(library(), f"gss_{name}")
    function.restype = _u32
    # All arguments are pointers, handles and numbers of 32 bits: they need no prototype.
    status: int = function(byref(minor), *arguments)
    if status >> 16:
        if name == "display_status":
            raise GssError("status without a text")
        texts = (_status_text(status, 1), _status_text(minor.value, 2))
        raise GssError(": ".join(filter(None, texts)))
    return status


def _output(name: str, *arguments: object) -> tuple[int, bytes]:
    """Call a function with an output buffer for ``_OUT``; return its status and the output."""
    out = _Buffer()
    try:
        status = _call(name, *(byref(out) if one is _OUT else one for one in arguments))
    finally:
        data = c.string_at(out.value, out.length) if out.value and out.length else b""
        library().gss_release_buffer(byref(_u32()), byref(out))
    return status, data


def _status_text(code: int, kind: int) -> str:
    _, text = _output("display_status", _u32(code), kind, byref(_KRB5), byref(_u32()), _OUT)
    return text.decode("utf-8", "replace")


def _buffer_of(data: bytes) -> object:
    return byref(_Given(len(data), data))


class _Handle:
    """One object of the library, which is released with it."""

    def __init__(self, release: str) -> None:
        """Note the function that releases the object.  Raises GssError without the library."""
        self.it = _p()
        self._release = getattr(library(), f"gss_{release}")

    def __del__(self) -> None:
        if self.it.value:
            # None is for the output of delete_sec_context; the others do not look at it.
            self._release(byref(_u32()), byref(self.it), None)


def _name_of(principal: str) -> _Handle:
    data, found = principal.encode(), _Handle("release_name")
    _call("import_name", _buffer_of(data), byref(_PRINCIPAL), byref(found.it))
    return found


def _text_of(name: _Handle) -> str:
    return _output("display_name", name.it, _OUT, None)[1].decode("utf-8", "surrogateescape")


def default_realm() -> str:
    """Return the realm of names without one, as krb5.conf has it.  Raises GssError."""
    anybody, found = _name_of("x"), _Handle("release_name")
    _call("canonicalize_name", anybody.it, byref(_KRB5), byref(found.it))
    return _text_of(found).rpartition("@")[2]


class Credentials:
    """The keys with which contexts are accepted, or the tickets with which they are begun."""

    def __init__(
        self, principal: str | None, usage: int, store: dict[str, str], *, negotiated: bool
    ) -> None:
        """Acquire them by the library's ``store``.  Raises GssError.

        ``negotiated``: SPNEGO may carry the tokens, too; what it agrees on is Kerberos all the
        same.
        """
        pairs = (_Pair * len(store))(
            *(_Pair(key.encode(), os.fsencode(value)) for key, value in store.items())
        )
        name = None if principal is None else _name_of(principal)
        self.handle = _Handle("release_cred")
        wanted = _KRB5_ALSO_NEGOTIATED if negotiated else _KRB5_ONLY
        _call(
            "acquire_cred_from", name and name.it, _u32(_INDEFINITE), byref(wanted), usage,
            byref(_Pairs(len(store), pairs)), byref(self.handle.it), None, None,
        )  # fmt: skip
        if negotiated:
            _call("set_neg_mechs", self.handle.it, byref(_KRB5_ONLY))
        seconds = _u32()
        if usage == _INITIATE:
            # A keytab's first tickets are fetched here, so that a failure is seen here, too.
            _call("inquire_cred", self.handle.it, None, byref(seconds), None, None)
        self.seconds = seconds.value
        """For how long tickets are good."""

    @classmethod
    def to_accept(cls, principal: str, keytab: str) -> "Credentials":
        """Return the keys of a service.  Raises GssError where the keytab has none."""
        return cls(principal, _ACCEPT, {"keytab": f"FILE:{keytab}"}, negotiated=False)

    @classmethod
    def to_accept_on_pages(cls, principal: str, keytab: str) -> "Credentials":
        """Return the keys of a service on HTTP, which takes each token once.  Raises GssError.

        One token is the whole handshake there, so whoever has seen it could send it again: tokens
        of the last minutes are kept in a file that all services of this user share.
        """
        store = {"keytab": f"FILE:{keytab}", "rcache": "dfl:"}
        return cls(principal, _ACCEPT, store, negotiated=True)

    @classmethod
    def of_keytab(cls, principal: str, keytab: str) -> "Credentials":
        """Log a service in with its keytab; no file keeps its tickets.  Raises GssError."""
        store = {"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:{principal}"}
        return cls(principal, _INITIATE, store, negotiated=True)

    @classmethod
    def of_person(cls) -> "Credentials":
        """Return the tickets that kinit has fetched.  Raises GssError if there are none."""
        return cls(None, _INITIATE, {}, negotiated=True)

    @property
    def principal(self) -> str:
        """Whose they are."""
        found = _Handle("release_name")
        _call("inquire_cred", self.handle.it, byref(found.it), None, None, None)
        return _text_of(found)


class Context:
    """One negotiation between two principals, and then what protects their messages."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._handle = _Handle("delete_sec_context")
        self._flags = _u32()
        self.complete = False
        self.initiator = ""
        """The principal of the side that began; known to the other side once complete."""

    def has(self, flags: int) -> bool:
        """Return whether the context has all these properties."""
        return self._flags.value & flags == flags

    def accept(self, token: bytes) -> bytes:
        """Take the initiator's token; return ours, perhaps empty.  Raises GssError."""
        source = _Handle("release_name")
        status, answer = _output(
            "accept_sec_context", byref(self._handle.it), self._credentials.handle.it,
            _buffer_of(token), None, byref(source.it), None, _OUT, byref(self._flags), None, None,
        )  # fmt: skip
        self.complete = not status & _CONTINUE
        self.initiator = _text_of(source) if self.complete else ""
        return answer

    def init(self, target: str, flags: int, token: bytes, *, negotiated: bool = False) -> bytes:
        """Take the acceptor's token, at first none; return ours.  Raises GssError."""
        if self._handle.it.value and not token:  # MIT's SPNEGO would read at address 0
            raise GssError("an empty token where the acceptor's is due")
        name, mechanism = _name_of(target), _SPNEGO if negotiated else _KRB5
        status, answer = _output(
            "init_sec_context", self._credentials.handle.it, byref(self._handle.it), name.it,
            byref(mechanism), flags, 0, None, _buffer_of(token) if token else None, None, _OUT,
            byref(self._flags), None,
        )  # fmt: skip
        self.complete = not status & _CONTINUE
        return answer

    def wrap(self, data: bytes, *, encrypt: bool) -> bytes:
        """Protect a message for the peer.  Raises GssError."""
        encrypted = c.c_int()
        arguments = (encrypt, 0, _buffer_of(data), byref(encrypted), _OUT)
        _, token = _output("wrap", self._handle.it, *arguments)
        if encrypt and not encrypted.value:
            raise GssError("the library did not encrypt")
        return token

    def unwrap(self, token: bytes, *, encrypted: bool) -> bytes:
        """Return the peer's next message; ``encrypted``: it must be.  Raises GssError."""
        was = c.c_int()
        status, data = _output("unwrap", self._handle.it, _buffer_of(token), _OUT, byref(was), None)
        if status & _NOT_NEXT:
            raise GssError(f"a message is lost, repeated or out of order (status {status:#x})")
        if encrypted and not was.value:
            raise GssError("a message is not encrypted")
        return data

    def longest_text(self, token_bytes: int, *, encrypt: bool) -> int:
        """Return how long a message may be whose token is to fit.  Raises GssError."""
        found = _u32()
        _call("wrap_size_limit", self._handle.it, encrypt, 0, token_bytes, byref(found))
        return found.value
