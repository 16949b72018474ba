"""The configuration of a command: ``--set``, then variables, then ``--config FILE``, then the defaults."""

import argparse
import os
from collections.abc import Iterator
from typing import NamedTuple

from jobq.cli.environment import FromVariable, named
from jobq.cli.exits import Exit, Stop
from jobq.cli.output import note
from jobq.config import Config
from jobq.configfile import Loaded, load
from jobq.errors import ConfigFileError
from jobq.settings import Setting, settings_of


def read_configuration(arguments: argparse.Namespace, *, path: str | None = None) -> Loaded[Config]:
    """Read everything that configures this command, mistakes included; ``path`` instead of ``--config``."""
    file = arguments.config if path is None else path
    try:
        return load(Config, path=file, environ=os.environ, texts=texts_of(arguments))
    except ConfigFileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            given = "" if path is not None else f"{named('--config', file)}: "
            raise Stop(Exit.NOT_FOUND, f"{given}no file at {file}", fix=error.fix) from error
        raise


def texts_of(arguments: argparse.Namespace) -> list[str]:
    """Return every ``--set``, those before the verb first."""
    return [*(arguments.set_first or ()), *(arguments.set or ())]


def refuse_settings(arguments: argparse.Namespace, owner: str) -> None:
    """Refuse ``--config`` and ``--set`` where a program brings its own configuration; a variable is passed over."""
    by_variable = isinstance(arguments.config, FromVariable)
    if texts_of(arguments) or (arguments.config and not by_variable):
        fix = 'Leave --config and --set out, or let it read jobq.Config.from_toml("jobq.toml", environ=os.environ).'
        raise Stop(Exit.USAGE, f"{owner} has its own configuration", fix=fix)
    if by_variable:
        note(f"note: JOBQ_CONFIG is not read, {owner} has its own configuration")


class Effective(NamedTuple):
    """A setting, the value in effect with its unit, and who set it."""

    name: str
    value: object
    unit: str
    source: str


def effective(loaded: Loaded[Config]) -> Iterator[Effective]:
    """Yield every setting with the value in effect, those of each queue after the others."""
    config = loaded.value()
    for one in settings_of(Config).values():
        value = getattr(config, one.name)
        if one.table is None:
            yield _effective(loaded, (one.section, one.key), one, value)
            continue
        for name, each in value.items():
            for inside in settings_of(one.table).values():
                yield _effective(loaded, (one.section, name, inside.key), inside, getattr(each, inside.name))


def _effective(loaded: Loaded[Config], path: tuple[str, ...], setting: Setting, value: object) -> Effective:
    unit = "" if value is None else setting.unit
    return Effective(".".join(path), value, unit, loaded.sources.get(path, "default"))
