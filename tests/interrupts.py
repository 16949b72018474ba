"""Ctrl-C at every moment: an action is done again and again, struck at each place where Python would raise."""

import _thread
import dis
import itertools
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import jobq

#: After these the interpreter looks for signals, besides the start of a function.
_LOOKS = tuple(code for name, code in dis.opmap.items() if name.startswith(("CALL", "JUMP_BACKWARD")))
_PACKAGE = str(Path(jobq.__file__).parent)


class _Signal(int):
    # Read as an attribute it marks the signal as arrived; a call would raise in the tracer and not in the traced code.
    arrive = property(_thread.interrupt_main)


_STRIKE = _Signal(signal.SIGINT)


class _Tracer:
    """Counts the places that an interrupt can strike, and marks the signal as arrived before one of them."""

    def __init__(self, number: int, part: str) -> None:
        self.left = number
        self.struck: object = None
        self._part = part

    def on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Look into functions of the package, and of contextlib, which stands between."""
        name = frame.f_code.co_filename
        if not (name.startswith(_PACKAGE) and self._part in name) and not name.endswith("contextlib.py"):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.left -= 1
        if self.left == 0:
            self.struck = _STRIKE.arrive
        return self.on_opcode

    def on_opcode(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Count the calls and the loops."""
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] in _LOOKS:
            self.left -= 1
            if self.left == 0:
                self.struck = _STRIKE.arrive
        return self.on_opcode


def strikes(action: Callable[[], object], *, part: str = "", every: int = 1) -> Iterator[int]:
    """Do the action again and again, yielding after each interrupt, until one time it comes through unstruck.

    ``part`` restricts the strikes to the files whose path has it, ``every`` to each so many-th place.
    """
    for number in itertools.count(1, every):
        if not _struck(action, _Tracer(number, part)):
            return
        yield number


def _struck(action: Callable[[], object], tracer: _Tracer) -> bool:
    before = sys.gettrace()
    try:
        sys.settrace(tracer.on_call)
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    assert tracer.left > 0, "the interrupt was swallowed"
    return False
