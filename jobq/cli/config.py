"""``jobq config check``."""

import argparse
from itertools import chain
from typing import Any

from jobq.cli.options import Options
from jobq.cli.verbs import Verbs

_CHECK = """\
Read the configuration as a command would, and print what is in effect: the value of each setting and who set it. A
mistake is named with its line and the nearest word that is known. Exit code 1 when there is one.

--set SECTION.KEY=VALUE wins over the setting's variable, that over the file, that over the default. A value is written
as in TOML; text needs no quotes. The settings, by section:

<SETTINGS>"""


def add_to(config: Verbs) -> None:
    """Add the verb to the tree."""
    config.verb("check", run, _fill, help="check a configuration file, and print what is in effect",
                description=_CHECK, formatter=_WithSettings)


def _fill(options: Options) -> None:
    options.positional("file", metavar="FILE", nargs="?", help="a TOML file; that of --config unless told")


class _WithSettings(argparse.RawDescriptionHelpFormatter):
    """Lists the settings, which costs too much to be done for each command."""

    def add_text(self, text: str | None) -> None:
        """Fill in the list."""
        super().add_text(text.replace("<SETTINGS>", settings_help()) if text else text)


def settings_help() -> str:
    """Return a paragraph for each section: its keys with their variables and meanings."""
    import textwrap  # start-up cost

    from jobq.config import Config
    from jobq.configsources import variables_inside
    from jobq.settings import settings_of

    sections: dict[str, list[str]] = {}
    for one in settings_of(Config).values():
        heading = f"[{one.section}]" if one.table is None else f"[{one.section}.<name>]"
        inside = {one.variable: one} if one.table is None else variables_inside(one)
        for variable, found in inside.items():
            lines = sections.setdefault(heading, [heading])
            lines.append(f"  {found.key} [{variable}]")
            lines.extend(textwrap.wrap(found.meaning, 100, initial_indent="      ", subsequent_indent="      "))
    return "\n".join(chain.from_iterable(sections.values()))


def run(arguments: argparse.Namespace) -> int:
    """Print the values in effect, or every mistake."""
    from jobq.cli.configuration import read_configuration  # start-up cost
    from jobq.cli.exits import Exit
    from jobq.errors import ConfigFileError

    try:
        loaded = read_configuration(arguments, path=arguments.file)
    except ConfigFileError as error:
        _print_mistakes([error], json=arguments.json)
        return Exit.FAILED
    if loaded.mistakes:
        _print_mistakes(loaded.mistakes, json=arguments.json)
        return Exit.FAILED
    _print_values(loaded, json=arguments.json)
    return Exit.DONE


def _print_mistakes(mistakes: Any, *, json: bool) -> None:
    from jobq.cli.output import escape, note, say, say_json  # start-up cost

    if json:
        listed = [
            {"problem": str(one), "fix": one.fix, "line": getattr(one, "line", None),
             "column": getattr(one, "column", None)}
            for one in mistakes
        ]
        say_json({"ok": False, "mistakes": listed})
        return
    for one in mistakes:
        say(escape(f"{one}. {one.fix}"))
    note(f"{len(mistakes)} {'mistake' if len(mistakes) == 1 else 'mistakes'}")


def _print_values(loaded: Any, *, json: bool) -> None:
    from jobq.cli.configuration import effective  # start-up cost
    from jobq.cli.output import say_json, shown, table

    rows = list(effective(loaded))
    if json:
        settings = {row.name: row.value for row in rows}
        say_json({"ok": True, "settings": settings, "sources": {row.name: row.source for row in rows}})
        return
    cells = ((row.name, f"{shown(_readable(row.value))} {row.unit}".rstrip(), row.source) for row in rows)
    table(("setting", "value", "set by"), cells, none="no setting")


def _readable(value: object) -> object:
    """Return a retention as it is written in a file, with durations that people read."""
    from jobq.model.duration import to_text  # start-up cost
    from jobq.retention import KEEP, Retention

    if not isinstance(value, Retention):
        return value
    ages = {field.name: getattr(value, field.name) for field in Retention.__attrs_attrs__}
    return ", ".join(f"{name} {KEEP if age is None else to_text(age)}" for name, age in ages.items())
