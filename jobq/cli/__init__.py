"""The command line: one file per noun; this one parses, calls the verb, and turns errors into exit codes."""

import os
import sys
from collections.abc import Sequence

from jobq.cli.exits import Exit, Stop, exit_code
from jobq.cli.parser import build_parser
from jobq.errors import JobqError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; ``argv`` is the command line without the program's name.

    An error that jobq knows is printed to standard error as ``error: ...`` and, where the user can do something about
    it, ``fix: ...``, without a traceback. So is a failure to write the output.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape instead of a UnicodeEncodeError.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        try:
            arguments = build_parser().parse_args(argv)
            code = int(arguments.run(arguments))
        finally:
            # Here and not at the interpreter's exit, where a failure would be a traceback and exit code 120.
            sys.stdout.flush()
    except (Stop, JobqError) as error:
        return _complain(error)
    except BrokenPipeError:
        # Whoever read our output has gone, and need not be told.
        _drop_output()
        return Exit.FAILED
    except OSError as error:
        _drop_output()
        return _complain(Stop(Exit.FAILED, f"writing the output, or reading the input: {error.strerror or error}"))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def _drop_output() -> None:
    """Let what is still buffered go nowhere: the interpreter flushes once more at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: Stop | JobqError) -> int:
    from jobq.cli.output import escape  # start-up cost

    print(f"error: {escape(str(error))}", file=sys.stderr)
    if error.fix:
        print(f"fix: {escape(error.fix)}", file=sys.stderr)
    return exit_code(error)
