"""Texts in rows: which of them live beside the row, and how those are read that are not UTF-8.

Somebody wrote those by hand, in another encoding. The driver raises for them in the middle of a statement, which must
not stop what concerns other rows.
"""

from typing import Any

import apsw

from jobq.log import get_logger

log = get_logger(__name__)

#: Texts up to this many bytes stay in the job's row; an UPDATE rewrites the whole row.
INLINE_LIMIT = 2000


def beside(body: str | None) -> tuple[str | None, str | None]:
    """Split a text into what stays in the row and what lives in the side table."""
    return (None, body) if is_long(body) else (body, None)


def is_long(body: str | None) -> bool:
    """Whether a text lives in the side table."""
    if body is None:
        return False
    return len(body) > INLINE_LIMIT or (not body.isascii() and len(body.encode()) > INLINE_LIMIT)


def lenient(body: bytes | None) -> str | None:
    """Return a text that was selected as bytes; what is not UTF-8 in it is replaced."""
    return None if body is None else body.decode(errors="replace")


def strict(body: bytes | None) -> str:
    """The same for a payload, which is empty, and so no JSON, when it is gone or not UTF-8: it must not run altered."""
    try:
        return "" if body is None else body.decode()
    except UnicodeDecodeError:
        return ""


def legible(cursor: apsw.Cursor) -> list[Any]:
    """Return the rows of a cursor, but for those with a text that is not UTF-8: the driver raises for them."""
    found: list[Any] = []
    while True:
        try:
            for row in cursor:
                found.append(row)
        except UnicodeDecodeError as error:
            log.warning("jobq.row.skipped", id=None, error=type(error).__name__)
        else:
            return found
