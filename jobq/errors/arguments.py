"""What a verb, a registration or a payload is refused for: the caller said something that cannot be."""

from jobq.errors.root import JobqError


class ArgumentError(JobqError, ValueError):
    """An argument of a verb is malformed or out of its range; nothing was written."""

    def __init__(self, argument: str, problem: str, *, fix: str | None = None) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem
        self.fix = fix or f"Call again with {argument} as described; nothing was written."


class CronError(ArgumentError):
    """A cron expression is malformed or can never fire; nothing was written.

    ``text`` is the part that is wrong, ``field`` the name of the field that it stands in and ``allowed`` that field's
    range; both are None where the expression as a whole is wrong.
    """

    def __init__(
        self,
        text: str,
        problem: str,
        *,
        field: str | None = None,
        allowed: str | None = None,
        fix: str | None = None,
    ) -> None:
        place = f"{field} " if field else ""
        bounds = f" ({allowed})" if allowed else ""
        super().__init__("cron", f"{place}{text[:40]!r}: {problem}{bounds}", fix=fix)
        self.text = text
        self.field = field
        self.allowed = allowed


class ConfigError(JobqError, ValueError):
    """A registration or a configuration value contradicts itself or another one."""

    def __init__(self, problem: str, *, fix: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix or "Correct the registration or the configuration; nothing was changed."


class ConfigFileError(ConfigError):
    """A configuration file cannot be read, is malformed, or says something that is unknown or not allowed.

    ``line`` and ``column`` count from 1 and are None where no place in the file is at fault.
    """

    def __init__(
        self, path: str, problem: str, *, line: int | None = None, column: int | None = None, fix: str | None = None
    ) -> None:
        place = "" if line is None else f", line {line}" if column is None else f", line {line}, column {column}"
        super().__init__(f"{path}{place}: {problem}", fix=fix)
        self.path = path
        self.problem = problem
        self.line = line
        self.column = column


class PayloadError(JobqError, ValueError):
    """A payload is not storable as JSON or does not fit its kind's schema.

    ``path`` leads to the bad value, as in ``$.items[3].price``; the value itself is never shown.
    """

    def __init__(self, path: str, problem: str, *, fix: str | None = None) -> None:
        super().__init__(f"payload at {path}: {problem}")
        self.path = path
        self.problem = problem
        self.fix = fix or "Send JSON values that fit the kind's payload class; turn other values into text or numbers."


class PayloadTooLarge(PayloadError):
    """An encoded payload is larger than ``payload_max_bytes``."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            "$",
            f"{size:,} bytes encoded, at most {limit:,} are allowed",
            fix="Store the content elsewhere and enqueue a reference to it, or raise payload_max_bytes.",
        )
        self.size = size
        self.limit = limit


class ResultError(JobqError, ValueError):
    """A handler's result is not storable as JSON, is too large or does not fit its kind's schema."""

    def __init__(self, path: str, problem: str, *, fix: str | None = None) -> None:
        super().__init__(f"result at {path}: {problem}")
        self.path = path
        self.problem = problem
        self.fix = fix or "Return JSON values that fit the kind's result class; turn other values into text or numbers."


class UnknownKind(JobqError, LookupError):
    """Nobody registered this kind (or payload class) here, and no row of the database knows it."""

    def __init__(self, kind: str, *, fix: str | None = None) -> None:
        super().__init__(f"unknown kind: {kind!r}")
        self.kind = kind
        self.fix = fix or "Register a handler for it, or enqueue it by its name."


class KindNotAccepted(JobqError, ValueError):
    """The queue is configured to accept other kinds only; nothing was written."""

    def __init__(self, kind: str, queue: str, *, accepted: tuple[str, ...]) -> None:
        super().__init__(f"the queue {queue!r} does not accept the kind {kind!r}")
        self.kind = kind
        self.queue = queue
        self.accepted = accepted
        kinds = ", ".join(accepted) or "no kind"
        self.fix = f"It accepts {kinds}. Name another queue, or change the kinds in the queue's configuration."


class RetiredKind(JobqError, ValueError):
    """The kind was declared retired; no job of it is accepted."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the kind {kind!r} is retired")
        self.kind = kind
        self.fix = "Enqueue the kind that replaced it, or register a handler for it again."
