"""Options and their environment variables, and the types of their values."""

import argparse
from collections.abc import Callable
from typing import Any

from jobq.cli.environment import from_environment, reader, truth


class Options:
    """Adds options to one command; each can also be given by an environment variable, which its help names.

    The variable of ``--max-jobs`` of ``jobq work`` is ``JOBQ_WORK_MAX_JOBS``. The command line wins over it, also over
    one with a bad value. An option that may be repeated is separated by commas in its variable.
    """

    def __init__(self, parser: argparse.ArgumentParser, *path: str) -> None:
        self._parser = parser
        self._prefix = "_".join(("JOBQ", *path)).upper()

    def add(
        self,
        *flags: str,
        help: str,
        type: Callable[[str], Any] = str,
        default: Any = None,
        repeated: bool = False,
        metavar: str,
    ) -> None:
        """Add an option that takes a value; a repeated one collects them in a list, None without any."""
        variable = self._variable(flags)
        found = from_environment(variable)
        self._parser.add_argument(
            *flags,
            action=Collect if repeated else "store",
            metavar=metavar,
            type=reader(type, self._parser, repeated=repeated),
            default=default if found is None else found,
            help=f"{help} [{variable}{', separated by commas' if repeated else ''}]",
        )

    def flag(self, *flags: str, help: str) -> None:
        """Add an option that is there or not."""
        add_flag(self._parser, self._parser, *flags, variable=self._variable(flags), help=help)

    def positional(self, name: str, **settings: Any) -> None:
        """Add an argument that is not an option; it has no environment variable."""
        self._parser.add_argument(name, **settings)

    def _variable(self, flags: tuple[str, ...]) -> str:
        long = next(flag for flag in flags if flag.startswith("--"))
        return f"{self._prefix}_{long.removeprefix('--').replace('-', '_')}".upper()


def add_flag(
    group: "argparse._ActionsContainer",
    parser: argparse.ArgumentParser,
    *flags: str,
    variable: str,
    help: str,
    default: Any = None,
) -> None:
    """Add an option that is there or not, to a parser or to a group of its options."""
    if default is None:
        default = from_environment(variable) or False
    group.add_argument(*flags, action=_Flag, nargs=0, type=reader(truth, parser), default=default,
                       help=f"{help} [{variable}]")


class _Flag(argparse.Action):
    """Stores True; unlike argparse's own action it has a type, for a default from the environment."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object) -> None:
        """Store it."""
        setattr(namespace, self.dest, True)


class Collect(argparse.Action):
    """Collects the values of an option that is repeated; the first one replaces the default."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, *_: object
    ) -> None:
        """Store one more."""
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*(before if isinstance(before, list) else ()), values])


def one_of(*words: str) -> Callable[[str], str]:
    """Return a type that accepts these words; unlike argparse's choices it also checks the environment."""

    def word(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return word


def queue_name(text: str) -> str:
    """Read the name of a queue."""
    from jobq.arguments import check_queue  # start-up cost
    from jobq.errors import ArgumentError

    try:
        return check_queue(text)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(error.problem) from None


def whole_number(text: str) -> int:
    """Read an integer that is at least 1."""
    if whole_or_zero(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole_or_zero(text: str) -> int:
    """Read an integer that is at least 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def duration(text: str) -> float:
    """Read seconds, or text such as 90s, 5m or 1h30m."""
    from jobq.errors import ArgumentError  # start-up cost
    from jobq.model.duration import to_seconds

    try:
        return to_seconds(float(text) if _is_number(text) else text, argument="duration")
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(error.problem) from None


def moment(text: str) -> Any:
    """Read an ISO 8601 date and time with its offset from UTC, such as 2030-01-31T07:00:00Z."""
    from datetime import datetime  # start-up cost

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time such as 2030-01-31T07:00:00Z") from None
    if when.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} names no offset from UTC; add Z or +01:00")
    return when


def priority(text: str) -> int:
    """Read an integer, or one of the names of :class:`jobq.Priority`."""
    from jobq.model.job import Priority  # start-up cost

    if text.upper() in Priority.__members__:
        return Priority[text.upper()].value
    try:
        return int(text)
    except ValueError:
        names = ", ".join(name.lower() for name in Priority.__members__)
        raise argparse.ArgumentTypeError(f"{text!r} is neither an integer nor one of {names}") from None


def json_value(text: str) -> Any:
    """Read a JSON text."""
    import json  # start-up cost

    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    except RecursionError:
        raise argparse.ArgumentTypeError("nested too deeply") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
