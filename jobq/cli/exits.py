"""Exit codes, and which error ends in which of them."""

from enum import IntEnum

from jobq import errors


class Exit(IntEnum):
    """What a script learns from a command; README.rst lists them."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    #: EX_TEMPFAIL of sysexits.h: the same command may work later.
    BUSY = 75
    #: 128 + SIGINT, as shells count.
    INTERRUPTED = 130


class Stop(Exception):
    """Ends a command with an exit code, a sentence, and what to do about it."""

    def __init__(self, code: Exit, problem: str, *, fix: str | None = None) -> None:
        super().__init__(problem)
        self.code = code
        self.fix = fix


#: The first class that fits decides; whatever is not here failed.
_CODES: tuple[tuple[type[errors.JobqError], Exit], ...] = (
    (errors.ArgumentError, Exit.USAGE),
    (errors.ConfigError, Exit.USAGE),
    (errors.PayloadError, Exit.USAGE),
    (errors.JobNotFound, Exit.NOT_FOUND),
    (errors.QueueNotFound, Exit.NOT_FOUND),
    (errors.ScheduleNotFound, Exit.NOT_FOUND),
    (errors.UnknownKind, Exit.NOT_FOUND),
    (errors.KindNotAccepted, Exit.REFUSED),
    (errors.RetiredKind, Exit.REFUSED),
    (errors.InvalidTransition, Exit.REFUSED),
    (errors.DedupeConflict, Exit.REFUSED),
    (errors.LeaseLost, Exit.REFUSED),
    (errors.BackupRefused, Exit.REFUSED),
    (errors.ForeignHandle, Exit.REFUSED),
    (errors.SchemaTooNew, Exit.REFUSED),
    (errors.StoreBusy, Exit.BUSY),
    (errors.WaitTimeout, Exit.BUSY),
)


def exit_code(error: Stop | errors.JobqError) -> Exit:
    """Return the exit code that an error ends in; FAILED for one that no other code describes."""
    if isinstance(error, Stop):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)
