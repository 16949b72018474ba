"""Where a configuration comes from: what a TOML document, environment variables and ``KEY=VALUE`` texts say."""

import datetime
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobq.errors import ConfigError
from jobq.model.nearest import suggestion
from jobq.settings import Setting, Settings, settings_of

#: Where a setting stands: ("jobs", "lease") or ("queues", "mail", "workers").
Path = tuple[str, ...]

#: Sections whose variables cannot be told from those of a command's options: an unknown one of these is no mistake.
SHARED = ("trace",)


class Given(NamedTuple):
    """One thing that somebody said: where in a file it would stand, the value, and who said it."""

    path: Path
    value: object
    #: "file", the name of a variable, or the option.
    source: str


def known_settings(kind: type[Settings]) -> tuple[dict[str, dict[str, Setting]], dict[str, Setting]]:
    """Return the keys of each plain section, and the sections that hold tables by name."""
    plain: dict[str, dict[str, Setting]] = {}
    tables: dict[str, Setting] = {}
    for found in settings_of(kind).values():
        if found.table is None:
            plain.setdefault(found.section, {})[found.key] = found
        else:
            tables[found.section] = found
    return plain, tables


def of_document(kind: type[Settings], document: Mapping[str, Any]) -> Iterator[Given]:
    """Yield what a file says; a section of tables is one level deeper."""
    plain, tables = known_settings(kind)
    for section, inside in document.items():
        if not isinstance(inside, dict) or (section not in plain and section not in tables):
            yield Given((section,), inside, "file")
            continue
        for key, value in inside.items():
            if section in tables and isinstance(value, dict):
                yield Given((section, key), {}, "file")
                yield from (Given((section, key, last), one, "file") for last, one in value.items())
            else:
                yield Given((section, key), value, "file")


def of_environment(
    kind: type[Settings], environ: Mapping[str, str], mistakes: list[ConfigError]
) -> Iterator[Given]:
    """Yield what the variables say; an empty one counts as not set."""
    plain, tables = known_settings(kind)
    by_variable = {one.variable: one for keys in plain.values() for one in keys.values()}
    for variable, text in sorted(environ.items()):
        if not text or not variable.startswith("JOBQ_"):
            continue
        section = variable.split("_")[1].lower()
        if variable in by_variable:
            yield Given((by_variable[variable].section, by_variable[variable].key), _value(text), variable)
        elif section in tables and (path := _inside_path(tables[section], variable)):
            yield Given(path, _value(text), variable)
        elif section in tables or (section in plain and section not in SHARED):
            known = [*by_variable, *(name for one in tables.values() for name in variables_inside(one))]
            mistakes.append(ConfigError(f"{variable}: no setting has this variable", fix=suggestion(variable, known)))


def variables_inside(section: Setting) -> dict[str, Setting]:
    """Return the variables of the settings inside the tables of a section; ``<NAME>`` stands for a table's name."""
    assert section.table is not None, "a section of tables says their class"
    prefix = f"JOBQ_{section.section}_<NAME>_".upper()
    return {f"{prefix}{one.key.upper()}": one for one in settings_of(section.table).values()}


def _inside_path(section: Setting, variable: str) -> Path | None:
    for pattern, one in variables_inside(section).items():
        before, after = pattern.split("<NAME>")
        if variable.startswith(before) and variable.endswith(after) and len(variable) > len(before + after):
            return section.section, variable[len(before) : -len(after)].lower(), one.key
    return None


def of_texts(texts: Sequence[str], mistakes: list[ConfigError]) -> Iterator[Given]:
    """Yield what texts such as ``jobs.lease=90s`` say."""
    for text in texts:
        name, equals, value = text.partition("=")
        path = tuple(part.strip() for part in name.split("."))
        fix = "For example jobs.lease=90s or queues.mail.workers=2."
        if not equals or len(path) < 2:
            mistakes.append(ConfigError(f"--set {text[:40]!r} is not SECTION.KEY=VALUE", fix=fix))
        elif len(path) > 3:
            mistakes.append(ConfigError(f"--set {name[:40]!r} has more than three names", fix=fix))
        else:
            yield Given(path, _value(value), f"--set {name.strip()[:80]}")


def _value(text: str) -> object:
    """Return the value that a text means: as in a file, but a text needs no quotes."""
    try:
        read = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    value = read["value"]
    # What TOML reads as a date is a file's name here.
    return text if len(read) > 1 or isinstance(value, datetime.date | datetime.time) else value
