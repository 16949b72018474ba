"""The tree of exceptions."""

import builtins
import re

import jobq
from jobq import errors

_LINE = re.compile(r"^    ([│ ├└─]*)(\w+)(?: \((\w+)\))?(?:  .*)?$")


def drawn() -> dict[str, tuple[str | None, str | None]]:
    """Return the drawing in the module's docstring: each class with its parent and the builtin it resembles."""
    found: dict[str, tuple[str | None, str | None]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").split("::\n\n")[1].split("\n\n")[0].splitlines():
        match = _LINE.match(line)
        assert match is not None, line
        depth = len(match[1]) // 4
        path = [*path[:depth], match[2]]
        found[match[2]] = (path[depth - 1] if depth else None, match[3])
    return found


def real() -> dict[str, tuple[str | None, str | None]]:
    """Return the same from the classes."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            bases = [base.__name__ for base in value.__bases__]
            ours = [base for base in bases if hasattr(errors, base)]
            others = [base for base in bases if hasattr(builtins, base) and base != "Exception"]
            found[name] = (ours[0] if ours else None, others[0] if others else None)
    return found


def test_drawing_shows_every_class_where_it_is() -> None:
    """Parent and builtin of each error, none missing and none too many."""
    assert drawn() == real()


def test_every_error_says_what_it_is() -> None:
    """A docstring on each class."""
    assert [name for name in drawn() if not getattr(errors, name).__doc__] == []


def test_root_catches_everything_but_a_cancellation() -> None:
    """A broad ``except Exception`` in a handler must not swallow the request to stop."""
    outside = [name for name in drawn() if not issubclass(getattr(errors, name), errors.JobqError)]

    assert outside == ["JobCancelled"]
    assert not issubclass(jobq.JobCancelled, Exception)


def test_errors_resemble_a_builtin_and_carry_a_fix() -> None:
    """A program that knows only Python's own errors catches them too."""
    error = errors.ArgumentError("delay", "it is late", fix="Be early.")

    assert isinstance(error, ValueError)
    assert (str(error), error.argument, error.fix) == ("delay: it is late", "delay", "Be early.")
    assert errors.JobqError("x").fix is None
