"""What commands print: tables and sentences for people, JSON for programs.

Everything that comes from a database or a file name is escaped, so that it cannot move a terminal's cursor.
"""

import json
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

_RED, _BOLD, _PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[0m"
#: On a terminal no column is cut below the first, and the last of a table gets the second where others can give.
_LEAST, _LAST = 10, 30
_LONGEST_CODE = 64


def escape(text: str) -> str:
    r"""Return the text with everything that does not print as ``\xNN`` or ``\uNNNN``.

    Control characters, direction marks, lone surrogates and line breaks are escaped; letters of any script stay.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    if letter in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[letter]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def colored(stream: TextIO) -> bool:
    """Whether colours may be used: on a terminal, unless NO_COLOR is set (https://no-color.org) or it is a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain(value: object) -> Any:
    """Return a value as JSON can carry it: attrs values as objects, times in ISO 8601."""
    if isinstance(value, datetime):
        return value.isoformat()
    fields: Any = getattr(value, "__attrs_attrs__", None)
    if fields is not None:
        return {field.name: plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


def write(stream: TextIO, text: str) -> None:
    """Write whole lines at once: a thread never writes into the line of another."""
    with _Lock.held:
        stream.write(f"{text}\n")
        stream.flush()


class _Lock:
    """One lock for both streams, because a terminal shows both; a forked child gets a fresh one."""

    held = threading.Lock()


def _fresh_lock() -> None:
    _Lock.held = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


def say_json(value: object, *, line: bool = False) -> None:
    """Print one JSON document to standard output; with ``line`` on one line and at once, as a stream needs it."""
    text = json.dumps(plain(value), indent=None if line else 2).replace("\x7f", "\\u007f")
    if line:
        write(sys.stdout, text)
    else:
        print(text)


def say(text: str) -> None:
    """Print one line of data to standard output."""
    print(escape(text))


def note(*lines: str) -> None:
    """Print lines that are not data to standard error, together and after the data that was printed before them."""
    sys.stdout.flush()
    write(sys.stderr, "\n".join(map(escape, lines)))


def shown(value: object) -> str:
    """Return a value as a cell of a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}Z"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str | int):
        return str(value)
    return json.dumps(plain(value), ensure_ascii=False)


def code(text: str | None) -> str | None:
    """Return a code that a handler gave, as a person wants to see it: at most 64 characters."""
    return None if text is None else _cut(text, _LONGEST_CODE)


def width() -> int | None:
    """Return how many columns the terminal has; None when standard output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, none: str, narrow: Collection[str] = ()
) -> None:
    """Print rows under a heading, each column as wide as its content; ``none`` is noted when there is no row.

    On a terminal the last column is cut to what remains of its width; when that is little, the columns named by
    ``narrow`` are cut as well. Times are UTC.
    """
    cells = [[escape(shown(cell)) for cell in row] for row in rows]
    if not cells:
        note(none)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    room = width()
    if room is not None:
        _make_room(widths, [index for index, name in enumerate(columns) if name in narrow], room)
    color = colored(sys.stdout)
    heading = _line(columns, widths)
    print(f"{_BOLD}{heading}{_PLAIN}" if color else heading)
    for row in cells:
        line = _line(row, widths)
        print(f"{_RED}{line}{_PLAIN}" if color and "failed" in row else line)


def facts(pairs: Iterable[tuple[str, object]], *, indent: str = "") -> None:
    """Print names and values, one pair a line; on a terminal a long value goes on below its beginning."""
    rows = [(escape(name), escape(shown(value))) for name, value in pairs]
    first = max(len(name) for name, _ in rows)
    room = width()
    for name, value in rows:
        start = f"{indent}{name:<{first}}  "
        lines = [value] if room is None else textwrap.wrap(value, max(room - len(start), _LEAST)) or [""]
        print(f"{start}{lines[0]}".rstrip())
        for line in lines[1:]:
            print(" " * len(start) + line)


def _make_room(widths: list[int], narrow: Sequence[int], room: int) -> None:
    """Cut the widths for a terminal: the last column gets what remains, at least _LAST where others can give."""
    before = 2 * (len(widths) - 1)
    while narrow and sum(widths[:-1]) + before + min(widths[-1], _LAST) > room:
        widest = max(narrow, key=widths.__getitem__)
        if widths[widest] <= _LEAST:
            break
        widths[widest] -= 1
    widths[-1] = min(widths[-1], max(room - sum(widths[:-1]) - before, 1))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "  ".join(f"{_cut(cell, most):<{most}}" for cell, most in pairs).rstrip()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
