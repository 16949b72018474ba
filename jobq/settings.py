"""What each field of a configuration says of itself: where it stands in a file, its variable, what it means.

A field with ``metadata=setting(...)`` needs nothing more: files, variables and the command line read and check it.
"""

from typing import Any, NamedTuple, Self

import attrs

from jobq.errors import ConfigError
from jobq.model.nearest import suggestion

_KEY = "jobq.setting"


class Setting(NamedTuple):
    """One setting: ``key`` in ``[section]`` of a file is the field ``name`` of the configuration."""

    section: str
    key: str
    meaning: str
    name: str
    #: The class of each table below the section, where the section holds tables by name; None for a plain value.
    table: "type[Settings] | None"
    #: Of a plain number: "s" or "bytes".
    unit: str
    field: "attrs.Attribute[Any]"

    @property
    def variable(self) -> str:
        """The environment variable; ``<NAME>`` stands for the name of a table."""
        return f"JOBQ_{self.section}_{self.key}".upper()


def setting(
    meaning: str,
    *,
    section: str = "jobs",
    key: str | None = None,
    unit: str = "",
    table: "type[Settings] | None" = None,
) -> dict[str, Any]:
    """Return the metadata of a field: its meaning in a line, its section, and its key where that is not its name."""
    return {_KEY: (section, key, meaning, unit, table)}


def settings_of(kind: "type[Settings]") -> dict[str, Setting]:
    """Return the settings of a class by the names of their fields, in order."""
    found: dict[str, Setting] = {}
    for field in attrs.fields(kind):
        section, key, meaning, unit, table = field.metadata[_KEY]
        found[field.name] = Setting(section, key or field.name, meaning, field.name, table, unit, field)
    return found


@attrs.frozen(kw_only=True)
class Settings:
    """The root of classes whose fields are settings; a keyword that none of them has is a ConfigError."""

    def __new__(cls, **given: object) -> Self:
        """Refuse a keyword that is no field, and name the nearest."""
        known = [field.name for field in attrs.fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigError(f"{name}: {cls.__name__} has no such setting", fix=suggestion(name, known))
        return object.__new__(cls)
