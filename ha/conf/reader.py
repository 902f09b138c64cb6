"""One Hadoop XML file and its includes, read into settings that record their file and line."""

from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.parsers import expat

from ha.conf.errors import ConfigurationError
from ha.record import dataclass

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_INCLUDE_DEPTH = 10
MAX_FILES = 100
"""Files read for one resource; stops two files that include each other twice."""
MAX_SETTINGS = 100_000
MAX_ELEMENT_DEPTH = 50

_PARTS = frozenset({"name", "value", "final"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a setting was made, for messages."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        """Return ``/etc/hadoop/hdfs-site.xml line 12``, or only the source."""
        return self.source if self.line is None else f"{self.source} line {self.line}"


@dataclass(frozen=True, slots=True)
class Setting:
    """One property: value as written (no ``${}`` expanded yet)."""

    name: str
    value: str
    origin: Origin
    final: bool = False


def read_settings(path: Path) -> tuple[Setting, ...]:
    """Read all properties of a file in the order in which they count, XIncludes in their places.

    Entities, external or internal, are refused: nothing outside the named files is read, and a
    small file cannot grow a thousandfold in memory.  Raises ``ConfigurationError``.
    """
    return tuple(_Resource(path).read())


@dataclass(slots=True)
class _Property:
    line: int
    parts: dict[str, str]


@dataclass(slots=True)
class _Include:
    href: str
    missing: Path | None
    had_fallback: bool = False


class _Resource:
    """A file with everything it includes; counts the files and settings read so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.files = 0
        self.settings: list[Setting] = []

    def read(self) -> list[Setting]:
        self.include(self._path, depth=0)
        return self.settings

    def include(self, path: Path, *, depth: int) -> None:
        self.files += 1
        if depth > MAX_INCLUDE_DEPTH or self.files > MAX_FILES:
            raise ConfigurationError(
                f"{path} is included too deeply or too often (at most {MAX_INCLUDE_DEPTH} levels "
                f"and {MAX_FILES} files, from {self._path}). Look for files that include "
                "each other."
            )
        _Document(path, self, depth).parse(_content(path))

    def add(self, setting: Setting) -> None:
        if len(self.settings) >= MAX_SETTINGS:
            raise ConfigurationError(
                f"{self._path} holds more than {MAX_SETTINGS} properties. "
                "Is it really a Hadoop configuration?"
            )
        self.settings.append(setting)


class _Document:
    """The state of one parse: the open elements, the property and the include being read."""

    def __init__(self, path: Path, resource: _Resource, depth: int) -> None:
        self._path = path
        self._resource = resource
        self._depth = depth
        self._stack: list[str] = []
        self._property: _Property | None = None
        self._text: list[str] | None = None
        self._includes: list[_Include] = []
        self._skipping = 0
        self._parser = expat.ParserCreate(namespace_separator="}")

    def parse(self, content: bytes) -> None:
        parser = self._parser
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_entity
        try:
            parser.Parse(content, True)  # noqa: FBT003 - expat's own shape: this is all of it
        except expat.ExpatError as error:
            raise ConfigurationError(
                f"{self._path} line {error.lineno} is not well-formed XML: "
                f"{expat.ErrorString(error.code)}. Correct the file; "
                "`xmllint --noout FILE` shows the same place."
            ) from error
        except (LookupError, ValueError) as error:
            raise ConfigurationError(
                f"{self._path} cannot be read as XML: {error}. Save it as UTF-8."
            ) from error

    def _fail(self, what: str) -> ConfigurationError:
        line = self._parser.CurrentLineNumber
        return ConfigurationError(f"{self._path} line {line}: {what}")

    def _refuse_entity(self, *_ignored: object) -> None:
        raise self._fail(
            "XML entities are not read. Write the value out, or use ${name} or xi:include."
        )

    def _start(self, full_name: str, attributes: dict[str, str]) -> None:
        name = full_name.rpartition("}")[2]
        if len(self._stack) >= MAX_ELEMENT_DEPTH:
            raise self._fail(f"elements are nested more than {MAX_ELEMENT_DEPTH} deep.")
        if not self._stack and name != "configuration":
            raise self._fail(
                f"the outermost element is <{name}>, but Hadoop's files have <configuration>."
            )
        self._stack.append(name)
        if self._skipping:
            self._skipping += 1
        elif self._property is not None:
            self._start_part(name)
        elif name == "property":
            self._property = _Property(self._parser.CurrentLineNumber, dict(attributes))
        elif name == "include":
            self._start_include(attributes)
        elif name == "fallback" and self._includes:
            include = self._includes[-1]
            include.had_fallback = True
            self._skipping = 0 if include.missing else 1
        elif name != "configuration":
            # As in Hadoop, elements that mean nothing are passed over, with what is in them.
            self._skipping = 1

    def _start_part(self, name: str) -> None:
        assert self._property is not None
        if self._stack[-2] != "property":
            raise self._fail(f"<{name}> stands inside <{self._stack[-2]}> of a property.")
        if name not in _PARTS:
            self._skipping = 1
            return
        if name in self._property.parts:
            # Two <value>s look like a list and are none: Hadoop silently takes the last.
            raise self._fail(
                f"a second <{name}> in one <property>. Put everything into one <{name}>"
                " (lists are separated by commas, fencing methods by line ends)."
            )
        self._text = []

    def _start_include(self, attributes: dict[str, str]) -> None:
        href = attributes.get("href", "").strip()
        address = urlparse(href)
        if not href or address.scheme not in ("", "file") or attributes.get("parse") == "text":
            raise self._fail(
                f"xi:include of {href!r}: only XML files of this machine can be included."
            )
        target = self._path.parent / unquote(address.path)
        try:
            missing = None if target.is_file() else target
        except OSError as error:
            raise self._fail(f"xi:include of {href!r}: {error.strerror}.") from error
        self._includes.append(_Include(href, missing))
        if missing is None:
            self._resource.include(target, depth=self._depth + 1)

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _end(self, _full_name: str) -> None:
        name = self._stack.pop()
        if self._skipping:
            self._skipping -= 1
        elif self._text is not None:
            assert self._property is not None
            self._property.parts[name] = "".join(self._text)
            self._text = None
        elif self._property is not None:
            self._finish_property(self._property)
            self._property = None
        elif name == "include":
            include = self._includes.pop()
            if include.missing is not None and not include.had_fallback:
                raise self._fail(
                    f"{include.missing} (xi:include of {include.href!r}) does not exist. "
                    "Correct the href, or add an <xi:fallback/>."
                )

    def _finish_property(self, found: _Property) -> None:
        name = found.parts.get("name", "").strip()
        if not name:
            raise self._fail("a <property> without a <name>.")
        if "value" not in found.parts:
            return  # Hadoop takes a property without a value for one that is not there
        self._resource.add(
            Setting(
                name=name,
                value=found.parts["value"],
                final=found.parts.get("final") == "true",
                origin=Origin(str(self._path), found.line),
            )
        )


def _content(path: Path) -> bytes:
    try:
        content = beginning(path)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror or error}. Check the path and who may read it."
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise ConfigurationError(
            f"{path} is larger than {MAX_FILE_BYTES} bytes. Is it really a Hadoop configuration?"
        )
    return content


def beginning(path: Path) -> bytes:
    """Return a file's first bytes, one more than a file may have; raise OSError."""
    if path.is_fifo():
        raise OSError("it is a pipe, whose writer may never come")
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)
