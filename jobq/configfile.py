"""A configuration from a TOML file, from environment variables and from ``KEY=VALUE`` texts: read, checked, merged.

What may be said is what the fields of the configuration say of themselves (:mod:`jobq.settings`). Every mistake is
found, not only the first; what is said later wins: file, then variables, then texts.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from jobq.configsources import Given, Path, known_settings, of_document, of_environment, of_texts
from jobq.errors import ConfigError, ConfigFileError
from jobq.model.nearest import nearest, suggestion
from jobq.settings import Setting, Settings, settings_of
from jobq.tomltext import line_of, read_toml

C = TypeVar("C", bound=Settings)


class Loaded(NamedTuple, Generic[C]):
    """What was read: the values by field, who said each, and every mistake."""

    kind: type[C]
    values: Mapping[str, Any]
    #: By the path of a setting, such as ("jobs", "lease") or ("queues", "mail", "workers").
    sources: Mapping[Path, str]
    mistakes: Sequence[ConfigError]

    def value(self) -> C:
        """Return the configuration, or raise the first mistake."""
        if not self.mistakes:
            return self.kind(**self.values)
        first = self.mistakes[0]
        if len(self.mistakes) > 1:
            first.add_note(f"There are {len(self.mistakes) - 1} more mistakes; `jobq config check` lists them.")
        raise first


def load(
    kind: type[C],
    *,
    path: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    texts: Sequence[str] = (),
) -> Loaded[C]:
    """Read the file, then the variables, then the texts, and check everything that they say.

    Raises:
        ConfigFileError: the file cannot be read or is no TOML.
    """
    text, document = ("", {}) if path is None else read_toml(path)
    reading = _Reading(kind, "" if path is None else os.fspath(path), text)
    reading.take(of_document(kind, document))
    reading.take(of_environment(kind, environ or {}, reading.mistakes))
    reading.take(of_texts(texts, reading.mistakes))
    return Loaded(kind, reading.values(), reading.sources, tuple(reading.mistakes))


class _Reading:
    """Collects what is said; each thing is checked by its own setting."""

    def __init__(self, kind: type[Settings], file: str, text: str) -> None:
        self._plain, self._tables = known_settings(kind)
        self._file, self._text = file, text
        self._found: dict[str, Any] = {}
        self._inside: dict[str, dict[str, dict[str, Any]]] = {}
        self._misnamed: set[str] = set()
        self.sources: dict[Path, str] = {}
        self.mistakes: list[ConfigError] = []

    def take(self, said: Iterator[Given]) -> None:
        for given in said:
            self._attempt(partial(self._place, given), given)

    def values(self) -> dict[str, Any]:
        """Return the values by field; a table's own values are made into its class."""
        values = dict(self._found)
        for section, tables in self._inside.items():
            made, kind = self._tables[section], self._tables[section].table
            assert kind is not None, "a section of tables says their class"
            values[made.name] = {name: kind(**inside) for name, inside in tables.items()}
        return values

    def _attempt(self, check: Callable[[], object], given: Given) -> None:
        try:
            check()
        except ConfigError as error:
            self.mistakes.append(self._located(error, given))

    def _place(self, given: Given) -> None:
        section = given.path[0]
        if section in self._tables:
            self._place_inside(self._tables[section], given)
            return
        keys = self._plain.get(section)
        if keys is None:
            raise _unknown_section(given.path, self._plain, self._tables)
        if len(given.path) == 1:
            raise ConfigError(f"{section}: a section is needed", fix=f"Write [{section}] and its keys below.")
        found = keys.get(given.path[1])
        if found is None:
            raise _unknown_key(given.path, self._plain)
        if len(given.path) > 2:
            fix = f"Write {section}.{found.key}=VALUE; a table is {{ name = value }}."
            raise ConfigError(f"{section}.{found.key}: it takes one value", fix=fix)
        if not self._finds_bad_entries(found, given):
            self._found[found.name] = _checked(found, given.value)
            self.sources[given.path] = given.source

    def _finds_bad_entries(self, found: Setting, given: Given) -> bool:
        """Look at each entry of a table by itself, so that a mistake has the entry's own line."""
        before = len(self.mistakes)
        if isinstance(given.value, Mapping) and _takes_a_table(found):
            for name, value in given.value.items():
                self._attempt(partial(_checked, found, {name: value}), given._replace(path=(*given.path, name)))
        return len(self.mistakes) > before

    def _place_inside(self, section: Setting, given: Given) -> None:
        assert section.table is not None, "a section of tables says their class"
        if len(given.path) == 1 or (len(given.path) == 2 and given.value != {}):
            raise ConfigError(
                f"{'.'.join(given.path)}: a section by name is needed", fix=f"Write [{section.key}.<name>]."
            )
        name = given.path[1]
        if name in self._misnamed:
            return  # which was a mistake already
        self._misnamed.add(name)
        _checked(section, {name: section.table()})
        self._misnamed.discard(name)
        inside = self._inside.setdefault(section.section, {}).setdefault(name, {})
        if len(given.path) == 2:
            return
        known = {one.key: one for one in settings_of(section.table).values()}
        key = given.path[2]
        if key not in known:
            raise ConfigError(f"{key}: [{section.key}.{name}] has no such key", fix=suggestion(key, known))
        inside[known[key].name] = _checked(known[key], given.value)
        self.sources[given.path] = given.source

    def _located(self, error: ConfigError, given: Given) -> ConfigError:
        if given.source != "file":
            return ConfigError(f"{given.source}: {error.problem}", fix=error.fix)
        return ConfigFileError(self._file, error.problem, line=line_of(self._text, given.path), fix=error.fix)


def _takes_a_table(found: Setting) -> bool:
    try:
        _checked(found, {})
    except ConfigError:
        return False
    return True


def _checked(found: Setting, value: object) -> object:
    converter = found.field.converter
    return converter(value) if callable(converter) else value


def _unknown_section(
    path: Path, plain: Mapping[str, Mapping[str, Setting]], tables: Mapping[str, Setting]
) -> ConfigError:
    name = path[0]
    homes = [section for section, keys in plain.items() if name in keys]
    if len(path) == 1 and homes:
        return ConfigError(f"{name}: it stands outside of any section", fix=f"Move it below [{homes[0]}].")
    return ConfigError(f"{name}: there is no such section", fix=suggestion(name, [*plain, *tables]))


def _unknown_key(path: Path, plain: Mapping[str, Mapping[str, Setting]]) -> ConfigError:
    section, key = path[:2]
    elsewhere = [other for other, keys in plain.items() if key in keys]
    if nearest(key, plain[section]) is None and elsewhere:
        return ConfigError(f"{key}: [{section}] has no such key", fix=f"Move it below [{elsewhere[0]}].")
    return ConfigError(f"{key}: [{section}] has no such key", fix=suggestion(key, plain[section]))
