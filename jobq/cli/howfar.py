"""How far a job is, in a few words."""

from typing import Any


def howfar(progress: Any) -> str | None:
    """Return what a handler has said last, such as "3 of 10 (30 %): unpacking"; None where it has said nothing.

    What somebody wrote into the row by hand says nothing either.
    """
    if not isinstance(progress, dict) or not isinstance(progress.get("done"), int | float):
        return None
    done, total, note = progress["done"], progress.get("total"), progress.get("note")
    text = amount(done)
    if isinstance(total, int | float):
        text += f" of {amount(total)}" + (f" ({min(done / total, 1):.0%})" if total > 0 else "")
    return f"{text}: {note}" if note else text


def amount(number: float) -> str:
    """Return a number as people read it: whole ones in full, others without the digits of a rounding."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.15g}"
