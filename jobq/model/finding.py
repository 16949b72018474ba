"""What a look for trouble finds."""

import attrs


@attrs.frozen(kw_only=True)
class Finding:
    """One check: its name, whether all is well, what was seen, and what to do about it."""

    check: str
    ok: bool
    detail: str
    fix: str | None = None


def judge(check: str, wrong: bool, detail: str, fix: str | None) -> Finding:
    """Return the finding of a check; what to do is a part of it only where something is wrong."""
    return Finding(check=check, ok=not wrong, detail=detail, fix=fix if wrong else None)
