"""What a look for trouble finds."""

import attrs


@attrs.frozen(kw_only=True)
class Finding:
    """One check: its name, whether all is well, what was seen, and what to do about it."""

    check: str
    ok: bool
    detail: str
    fix: str | None = None
