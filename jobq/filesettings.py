"""The checks of the settings that name and bound files."""

import os

from jobq.settingchecks import optional_path, whole

#: The largest size at which a file is rotated, and the most older ones.
MOST_FILE, MOST_BACKUPS = 2**40, 1_000


def events_file(value: str | os.PathLike[str] | None) -> str | None:
    """Return the path of the event log; "" for none, None for the one that only ``jobq work`` has."""
    return "" if value == "" else optional_path("events_file", value)


def log_file(value: str | os.PathLike[str] | None) -> str | None:
    """Return the path of the file of log lines, None for none."""
    return optional_path("log_file", value)


def log_keep_days(value: int | None) -> int | None:
    """Return for how many days log lines are kept; None for ever."""
    return None if value is None else whole("log_keep_days", value, least=1, most=36_500)


def file_max_bytes(value: int) -> int:
    """Return the size at which a file of events or lines is rotated."""
    return whole("file_max_bytes", value, least=1_000, most=MOST_FILE)


def file_backups(value: int) -> int:
    """Return how many older files of events or lines are kept."""
    return whole("file_backups", value, least=0, most=MOST_BACKUPS)


def trace_file(value: str | os.PathLike[str] | None) -> str | None:
    """Return the path of the trace, None for none."""
    return optional_path("trace_file", value)


def trace_max_bytes(value: int) -> int:
    """Return the size at which the trace is rotated."""
    return whole("trace_max_bytes", value, least=1_000, most=MOST_FILE)


def trace_backups(value: int) -> int:
    """Return how many older files of the trace are kept."""
    return whole("trace_backups", value, least=0, most=MOST_BACKUPS)
