"""Which job queue a command works on: ``-A module:attr``, ``--db PATH``, or both."""

import argparse
import getpass
import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from jobq.cli.configuration import read_configuration, refuse_settings
from jobq.cli.environment import named
from jobq.cli.exits import Exit, Stop
from jobq.cli.output import note
from jobq.config import Config
from jobq.errors import StoreUnavailable
from jobq.handlers import Handlers
from jobq.jobqueue import JobQueue
from jobq.opening import open as open_queue
from jobq.outbox.outbox import Outbox

_FIX = "Check the path; `jobq work`, `jobq job enqueue` and `jobq schedule add` make a new one."


def open_target(
    arguments: argparse.Namespace,
    *,
    create: bool = False,
    work: bool = False,
    rehearse: Callable[[JobQueue], object] | None = None,
) -> JobQueue:
    """Return the job queue that the options name; the caller closes it.

    A job queue that is not there is made only with ``create``, and that is said on standard error; otherwise it is
    "not found", so that a misspelt path does not look like an empty queue, and a file of somebody else's stays as it
    is. With ``work`` there have to be handlers; without any no file is made. Before a file is made ``rehearse`` is
    called with a temporary one: what it raises leaves no file behind. A file that is opened here is configured by
    ``--config``, ``--set`` and the settings' variables; a program's job queue brings its own configuration.
    """
    found = _load(arguments.app, "--app", JobQueue, Handlers) if arguments.app else None
    if work:
        _require_handlers(found)
    if isinstance(found, JobQueue):
        return _own(arguments, found)
    path = _path_of(arguments, found)
    handlers = () if found is None else found
    config = read_configuration(arguments).value()
    if create and rehearse is not None and not os.path.exists(path):
        with open_queue(handlers=handlers, config=config) as temporary:
            rehearse(temporary)
    _check_path(path, create=create)
    try:
        return open_queue(path, handlers=handlers, config=config, create=create)
    except StoreUnavailable as error:
        # Without a code of SQLite's it is jobq that refused.
        if create or error.code:
            raise
        raise Stop(Exit.NOT_FOUND, f"no job queue in {path}", fix=_FIX) from error


def find_target(arguments: argparse.Namespace) -> tuple[str, Config]:
    """Return the database and the configuration that the options name; a database that is named is not opened."""
    found = _load(arguments.app, "--app", JobQueue, Handlers) if arguments.app else None
    if isinstance(found, JobQueue):
        with _own(arguments, found) as jobs:
            return jobs.path, jobs.config
    return _path_of(arguments, found), read_configuration(arguments).value()


def _own(arguments: argparse.Namespace, found: JobQueue) -> JobQueue:
    refuse_settings(arguments, arguments.app)
    if not found.file_existed:
        note(f"note: made a new database at {found.path}")
    if arguments.db and os.path.realpath(arguments.db) != os.path.realpath(found.path):
        raise Stop(Exit.USAGE, f"{arguments.app} has its own database, {found.path}", fix="Leave --db out.")
    return found


def _path_of(arguments: argparse.Namespace, found: Handlers | None) -> str:
    if arguments.db:
        return str(arguments.db)
    if found is not None:
        raise Stop(Exit.USAGE, f"{arguments.app} is a Handlers and has no database", fix="Add --db PATH.")
    raise Stop(Exit.USAGE, "no database named", fix="Add --db PATH or -A MODULE:ATTR, or set JOBQ_DB or JOBQ_APP.")


def _require_handlers(found: JobQueue | Handlers | None) -> None:
    registry = found.handlers if isinstance(found, JobQueue) else found
    if registry is None or not registry.kinds():
        raise Stop(Exit.USAGE, "there is no handler to run", fix="Name the program's with -A MODULE:ATTR.")


def login_name() -> str:
    """Return who is at the keyboard, for what is done by hand."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "user"


def _check_path(path: str, *, create: bool) -> None:
    if os.path.exists(path):
        return
    if not create:
        raise Stop(Exit.NOT_FOUND, f"no database at {path}", fix=_FIX)
    note(f"making a new database at {path}")


def load_outboxes(arguments: argparse.Namespace) -> list[Outbox]:
    """Return the outboxes that ``--outbox`` names."""
    return [_load(target, "--outbox", Outbox) for target in arguments.outbox or ()]


def _load(target: str, option: str, *wanted: type) -> Any:
    name, _, attribute = target.partition(":")
    given = f"{named(option, target)} {target}"
    if not name or not attribute:
        raise Stop(Exit.USAGE, f"{given}: MODULE:ATTR is needed", fix="For example -A shop.tasks:jobs.")
    if name.endswith(".py") or os.sep in name:
        raise Stop(Exit.USAGE, f"{given} names a file, and a module is needed", fix=_module_fix(name, attribute))
    module = _import(name)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, wanted):
        fit = sorted(key for key, value in vars(module).items() if isinstance(value, wanted))
        fix = f"In {name} these are: {', '.join(fit)}." if fit else f"Nothing in {name} is one."
        names = [cls.__name__ for cls in wanted]
        what = f"no {names[0]}" if len(names) == 1 else f"neither a {' nor a '.join(names)}"
        raise Stop(Exit.USAGE, f"{given} is {what}", fix=fix)
    return found


def _module_fix(file: str, attribute: str) -> str:
    """Say what was meant by the path of a file."""
    path = os.path.relpath(file.removesuffix(".py"))
    folder, name = os.path.split(path)
    if path.startswith(os.pardir):
        return f"Did you mean -A {name}:{attribute}, run in {os.path.abspath(folder)}?"
    return f"Did you mean -A {path.replace(os.sep, '.')}:{attribute}?"


def _import(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        # A command line is started where the program is, as with `python -m`.
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except SystemExit as error:
        fix = 'Let the module call sys.exit only under `if __name__ == "__main__":`.'
        raise Stop(Exit.FAILED, f"importing {name} called sys.exit({error.code!r})", fix=fix) from error
    except Exception as error:
        fix = f'Run python -c "import {name}" in this directory to see where.'
        raise Stop(Exit.USAGE, f"importing {name} raised {type(error).__name__}: {error}", fix=fix) from error
