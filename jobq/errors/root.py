"""The root of the tree: what every error can do."""


class JobqError(Exception):
    """The root of all errors of jobq but :class:`JobCancelled`."""

    #: What the user can do about it, as a sentence; None where there is nothing to do.
    fix: str | None = None

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "fix" and isinstance(value, str):
            self.__notes__ = [value]

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel between processes by pickle; their __init__ takes the data, not the finished message.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: "type[JobqError]", arguments: tuple[object, ...], data: dict[str, object]) -> "JobqError":
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(data)
    return error
