"""What a kind and a queue may be called."""

import re
from functools import lru_cache

_KIND = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,200}")
_QUEUE = re.compile(r"[a-z][a-z0-9_-]{0,40}")


@lru_cache(maxsize=512)
def is_kind(text: str) -> bool:
    """Whether this can be a kind: 1 to 200 characters without control characters."""
    return _KIND.fullmatch(text) is not None


@lru_cache(maxsize=512)
def is_queue(text: str) -> bool:
    """Whether this can name a queue: a lower-case letter, then up to 40 of a-z, 0-9, _ and -."""
    return _QUEUE.fullmatch(text) is not None
