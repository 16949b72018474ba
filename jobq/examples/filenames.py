r"""File names as text that fits into JSON, and back, whatever their bytes.

A file name on POSIX is bytes; those that are no UTF-8 reach Python as lone surrogates, which JSON text in UTF-8 cannot
carry. A byte that does not decode is written as ``\xNN`` and a backslash as ``\\``; all other names stay readable.
"""

import os
import re

_ODD = re.compile("[\\\\\udc80-\udcff]")
_ESCAPE = re.compile(r"\\(\\|x[0-9a-f]{2})")


def to_text(name: str) -> str:
    r"""Return a file name as storable text: ``to_name(to_text(name)) == name`` for every name the system can have."""
    return _ODD.sub(_escape, name)


def to_name(text: str) -> str:
    """Return the file name that :func:`to_text` wrote."""
    return _ESCAPE.sub(_unescape, text)


def sum_line(digest: str, name: str) -> bytes:
    r"""Return one line as ``sha256sum`` writes it, so that ``sha256sum -c`` reads it.

    A name with a line break or a backslash has them escaped, and a backslash in front of the line says so (GNU
    coreutils, "cksum output modes").
    """
    raw = os.fsencode(name)
    escaped = raw.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return (b"\\" if escaped != raw else b"") + digest.encode() + b"  " + escaped + b"\n"


def _escape(match: "re.Match[str]") -> str:
    letter = match.group()
    return "\\\\" if letter == "\\" else f"\\x{ord(letter) - 0xDC00:02x}"


def _unescape(match: "re.Match[str]") -> str:
    escaped = match.group(1)
    return "\\" if escaped == "\\" else chr(0xDC00 + int(escaped[1:], 16))
