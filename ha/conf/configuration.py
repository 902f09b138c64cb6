"""The configuration of one cluster: files, overrides and defaults behind typed keys."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from ha.conf.errors import BadValue, ConfigurationError
from ha.conf.expansion import ExpansionFailed, expand
from ha.conf.keys.cluster import INTERNAL_NAMESERVICES, NAMENODE_ID, NAMENODES, NAMESERVICE_ID
from ha.conf.keys.cluster import NAMESERVICES as ALL_NAMESERVICES
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.table import KEYS
from ha.conf.keys.units import text as plain_text
from ha.conf.keys.units import words
from ha.conf.keys.unused import NOT_USED, RENAMED
from ha.conf.own_user import system_user
from ha.conf.reader import Origin, Setting, read_settings
from ha.conf.secrets import HIDDEN, redact, shown_value
from ha.conf.spelling import untrusted_znodes
from ha.record import dataclass, field, replace

T = TypeVar("T")

FILES = ("core-site.xml", "hdfs-site.xml")
"""In Hadoop's order: a later file overrides an earlier one, but not what that made final."""

COMMAND_LINE = Origin("the command line (-D)")
CONF_DIR_VARIABLE = "HADOOP_CONF_DIR"
_SHOWN_CHARACTERS = 200
_NOT_USED = tuple(Key(name, plain_text, "", Scope.NAMENODE, "") for name in NOT_USED)
"""Fencing scripts may want them as the node sees them, which nnha itself does not."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Immutable settings.  ``warnings`` lists keys that look misspelt, and other doubts.

    ``again`` reads the same files anew, with the same overrides; it raises ConfigurationError.
    ``folder`` is where they lie.
    """

    settings: Mapping[str, Setting]
    environment: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    again: "Callable[[], Configuration] | None" = field(default=None, compare=False, repr=False)
    folder: Path | None = field(default=None, compare=False, repr=False)

    def get(self, key: Key[T], *, nameservice: str | None = None, namenode: str | None = None) -> T:
        """Return a key's typed value: the most specific suffix that is set, else the default.

        Raises ``ConfigurationError`` naming file, line, key, value and expected shape.
        """
        setting = self._find(key, nameservice, namenode)
        text = key.default if setting is None else setting.value
        name = key.name if setting is None else setting.name
        origin = Origin("the built-in default") if setting is None else setting.origin
        try:
            expanded = self._expand(text)
            return key.parse(expanded)
        except (BadValue, ExpansionFailed) as error:
            shown = _format_value(name, text)
            raise ConfigurationError(
                f"{origin}: {name} is {shown}, but it {_without(name, text, error)}."
            ) from error

    def require(
        self, key: Key[T | None], *, nameservice: str | None = None, namenode: str | None = None
    ) -> T:
        """Return as ``get``, for a key that must be set; raise ``ConfigurationError`` if not."""
        value = self.get(key, nameservice=nameservice, namenode=namenode)
        if value is None or (isinstance(value, Sized) and not len(value)):
            name = _names(key, nameservice, namenode)[0]
            purpose = f" ({key.doc})" if key.doc else ""
            raise ConfigurationError(f"{name}{purpose} is not set. Add it to {FILES[1]}.")
        return value

    def where(
        self, key: Key[object], *, nameservice: str | None = None, namenode: str | None = None
    ) -> str:
        """Return ``file line N: key`` of the setting that ``get`` reads, for messages about it."""
        setting = self._find(key, nameservice, namenode)
        return (
            f"the default: {key.name}" if setting is None else f"{setting.origin}: {setting.name}"
        )

    def is_set(
        self, key: Key[object], *, nameservice: str | None = None, namenode: str | None = None
    ) -> bool:
        """Return whether ``get`` reads a setting, and not the default."""
        return self._find(key, nameservice, namenode) is not None

    def raw(self, name: str) -> str | None:
        """Return the configured text of a key after expansion of ``${}``; None when it is not set.

        Defaults do not count.  Raises ``ConfigurationError`` when the expansion does not end.
        """
        setting = self.settings.get(name)
        if setting is None:
            return None
        try:
            return self._expand(setting.value)
        except ExpansionFailed as error:
            shown = _format_value(name, setting.value)
            raise ConfigurationError(
                f"{setting.origin}: {name} is {shown}, but it {error}."
            ) from error

    def with_overrides(self, overrides: Sequence[str]) -> "Configuration":
        """Return a copy with ``key=value`` texts on top; they beat even final values."""
        added = [_override(text) for text in overrides]
        return _merge([*self.settings.values(), *added], self.environment, self.warnings)

    def scoped(self, nameservice: str, namenode: str | None) -> "Configuration":
        """Return a copy as that node uses it: its suffixed keys under their generic names.

        The counterpart of Hadoop's ``NameNode.initializeGenericKeys``.
        """
        settings = dict(self.settings)
        for key in (*KEYS.values(), *_NOT_USED):
            found = self._find(key, nameservice, namenode)
            if found is not None:
                settings[key.name] = Setting(key.name, found.value, found.origin, found.final)
        ids = {NAMESERVICE_ID.name: nameservice, NAMENODE_ID.name: namenode}
        for name, value in ids.items():
            if value is not None:
                settings[name] = Setting(name, value, Origin("this node"))
        return Configuration(MappingProxyType(settings), self.environment, self.warnings)

    def promoted(self, nameservice: str, namenode: str | None) -> Mapping[str, str]:
        """Return every configured key as that node uses it, expanded, for a fencing script.

        A value whose expansion does not end is returned as it was written.
        """
        scoped = self.scoped(nameservice, namenode)
        return {name: scoped._expanded_or_raw(one.value) for name, one in scoped.settings.items()}

    def _find(self, key: Key[T], nameservice: str | None, namenode: str | None) -> Setting | None:
        names = _names(key, nameservice, namenode)
        return next((self.settings[name] for name in names if name in self.settings), None)

    def _raw_value(self, name: str) -> str | None:
        name = RENAMED.get(name, name)
        if name in self.settings:
            return self.settings[name].value
        return KEYS[name].default if name in KEYS else None

    def _lookup(self, name: str) -> str | None:
        # Hadoop asks Java's system properties first; these are the ones found in real files.
        match name:
            case "user.name":
                return system_user()
            case "user.home":
                return self.environment.get("HOME", "/")
            case "java.io.tmpdir":
                # Loaded here: it brings all compressors, and few files name this folder.
                import tempfile

                return tempfile.gettempdir()
            case _:
                return self._raw_value(name)

    def _expand(self, text: str) -> str:
        return expand(text, self._lookup, self.environment)

    def _expanded_or_raw(self, text: str) -> str:
        try:
            return self._expand(text)
        except ExpansionFailed:
            return text


def load_configuration(
    conf_dir: Path | None,
    overrides: Sequence[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
) -> Configuration:
    """Read ``core-site.xml`` and ``hdfs-site.xml`` of a folder, then ``key=value`` overrides.

    Without a folder, that of HADOOP_CONF_DIR is taken.  Raises ``ConfigurationError``.
    """
    variables = dict(os.environ if environment is None else environment)
    folder = conf_dir or (Path(variables[CONF_DIR_VARIABLE]) if _has_folder(variables) else None)
    if folder is None:
        raise ConfigurationError(
            f"No configuration folder: give --conf-dir DIR or set {CONF_DIR_VARIABLE} to the "
            f"folder that holds {' and '.join(FILES)}."
        )
    paths = [path for path in (folder / name for name in FILES) if _is_there(path)]
    if not paths:
        raise ConfigurationError(
            f"{folder} holds neither {' nor '.join(FILES)}. Give the folder of the cluster's "
            f"configuration with --conf-dir or {CONF_DIR_VARIABLE}."
        )
    settings = [setting for path in paths for setting in read_settings(path)]
    found = _merge([*settings, *(_override(text) for text in overrides)], variables)
    again = partial(load_configuration, folder, overrides, environment=variables)
    return replace(found, again=again, folder=folder)


def _is_there(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()  # a dangling one is reported when it is read
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be looked for: {error.strerror}. Check the path, and who may enter "
            f"{path.parent}."
        ) from error


def _has_folder(variables: Mapping[str, str]) -> bool:
    return bool(variables.get(CONF_DIR_VARIABLE))


def _merge(
    settings: Iterable[Setting], environment: Mapping[str, str], earlier: tuple[str, ...] = ()
) -> Configuration:
    merged: dict[str, Setting] = {}
    warnings: list[str] = []
    for one in settings:
        setting = one
        if setting.name in RENAMED:
            new_name = RENAMED[setting.name]
            warnings.append(f"{one.origin}: {one.name} is an old name. Write {new_name}.")
            setting = Setting(new_name, one.value, one.origin, one.final)
        held = merged.get(setting.name)
        if held is not None and held.final and setting.origin is not COMMAND_LINE:
            warnings.append(
                f"{setting.origin}: {setting.name} has no effect, "
                f"because {held.origin} makes it final."
            )
            continue
        merged[setting.name] = setting
    frozen = Configuration(MappingProxyType(merged), MappingProxyType(dict(environment)))
    warnings += untrusted_znodes(merged, nodes_of(frozen))
    both = tuple(dict.fromkeys((*earlier, *warnings)))
    return Configuration(frozen.settings, frozen.environment, both)


def nodes_of(configuration: Configuration) -> dict[str, tuple[str, ...]]:
    """Return the NameNode ids of each nameservice, as they are configured."""
    names = configuration.get(ALL_NAMESERVICES) or configuration.get(INTERNAL_NAMESERVICES)
    return {name: words(configuration.raw(f"{NAMENODES.name}.{name}") or "") for name in names}


def _format_value(name: str, text: str) -> str:
    shown = shown_value(name, text)
    return repr(shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + "...")


def _without(name: str, text: str, error: Exception) -> str:
    """Return the fault of a value, without the secrets that the error may quote."""
    return "cannot be used" if shown_value(name, text) == HIDDEN else redact(str(error))


def _names(key: Key[T], nameservice: str | None, namenode: str | None) -> tuple[str, ...]:
    names = [key.name]
    if nameservice and key.scope is not Scope.GLOBAL:
        names.insert(0, f"{key.name}.{nameservice}")
        if namenode and key.scope is Scope.NAMENODE:
            names.insert(0, f"{key.name}.{nameservice}.{namenode}")
    return tuple(names)


def _override(text: str) -> Setting:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        shown = redact(text)
        raise ConfigurationError(f"-D {shown!r} is not a setting. Write -D key=value.")
    return Setting(name.strip(), value, COMMAND_LINE)
