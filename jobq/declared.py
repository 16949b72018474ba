"""The schedules that a registry of handlers declares, and which modules they came from."""

from collections.abc import Iterable
from enum import StrEnum

import attrs

from jobq.declaring import Declaration
from jobq.errors import ConfigError


class Missing(StrEnum):
    """What becomes of stored schedules that came from a module which no longer declares them."""

    KEEP = "keep"
    REMOVE = "remove"


class Declared:
    """Declared schedules by name. The registry that owns it does the locking."""

    def __init__(self) -> None:
        self._schedules: dict[str, Declaration] = {}
        self._missing: dict[str, Missing] = {}
        #: Grows with each change, so that a job queue sees at a glance that it has something to store.
        self.version = 0

    def schedules(self) -> tuple[Declaration, ...]:
        """Return the declared schedules, by name."""
        return tuple(self._schedules[name] for name in sorted(self._schedules))

    def swept(self) -> frozenset[str]:
        """Return the modules whose stored schedules go when they are no longer declared."""
        return frozenset(module for module, missing in self._missing.items() if missing is Missing.REMOVE)

    def refuse_others(self, declarations: Iterable[Declaration]) -> None:
        """Raise ConfigError where one of them has the name of another schedule; the same one again is none."""
        for declaration in declarations:
            present = self._schedules.get(declaration.name, declaration)
            if attrs.evolve(present, module=None) != attrs.evolve(declaration, module=None):
                raise ConfigError(f"a schedule {declaration.name!r} is declared already", fix="Name one differently.")

    def add(self, declarations: Iterable[Declaration], missing: dict[str, Missing] | None = None) -> None:
        """Take in what :meth:`refuse_others` let pass, and what its modules want of schedules that are missing."""
        # Replaced, not changed: who reads meanwhile needs no lock.
        self._schedules = {**self._schedules, **{declaration.name: declaration for declaration in declarations}}
        self._missing = {**self._missing, **(missing or {})}
        self.version += 1

    def take(self, other: "Declared") -> None:
        """Take in what another registry has; raises ConfigError where the two contradict each other."""
        self.refuse_others(other.schedules())
        if other.version:
            self.add(other.schedules(), other._missing)
