"""The known word that a misspelt one is nearest to."""

from collections.abc import Iterable

#: So many known words are listed where none is near.
_MOST_LISTED = 12


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that this one is likely to mean; None when none is near."""
    from difflib import get_close_matches  # start-up cost: only a mistake needs it

    spelt = {one.lower(): one for one in known}
    found = get_close_matches(word[:100].lower(), spelt, n=1)
    return spelt[found[0]] if found else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a sentence that names the nearest known word, else those that there are."""
    words = sorted(known)
    near = nearest(word, words)
    if near is not None:
        return f"Did you mean {near}?"
    more = f" and {len(words) - _MOST_LISTED} more" if len(words) > _MOST_LISTED else ""
    return f"Known: {', '.join(words[:_MOST_LISTED])}{more}." if words else "There is none."
