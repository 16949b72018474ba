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
    it, ``fix: ...``, without a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape instead of a UnicodeEncodeError.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    arguments = build_parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except (Stop, JobqError) as error:
        return _complain(error)
    except BrokenPipeError:
        # Whoever read our output has gone. The interpreter flushes once more at exit and must find somewhere to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def _complain(error: Stop | JobqError) -> int:
    from jobq.cli.output import escape  # start-up cost

    print(f"error: {escape(str(error))}", file=sys.stderr)
    if error.fix:
        print(f"fix: {escape(error.fix)}", file=sys.stderr)
    return exit_code(error)
