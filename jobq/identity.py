"""Who a process is to others on its machine."""

import os
import socket
import threading
import uuid
from functools import lru_cache


def new_runner_id() -> str:
    """Return an id that no other runner has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"


def worker_name() -> str:
    """Return the name of a worker that was given none: host, process and thread."""
    return f"{socket.gethostname()}:{os.getpid()}:{threading.current_thread().name}"


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return what changes with each boot of this machine: monotonic times of two processes compare within one only.

    Where the system has no such id, it is one of this process, which compares with nobody.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return uuid.uuid4().hex
