"""Looking for what goes wrong in practice."""

from jobq.core import Core
from jobq.errors import StoreCorrupt
from jobq.findings import findings_of
from jobq.model.finding import Finding, judge


class Doctor(Core):
    """The verb that looks for trouble."""

    def doctor(self, *, deep: bool = False) -> list[Finding]:
        """Return one finding for each check, with what to do where something is wrong; nothing is changed.

        It looks at the SQLite library and the file, for a handle of another SQLite library in this process, at the
        file system, the clock and the sizes, for work that no live runner does, for pauses, leases that ran out, and
        schedules that cannot fire. It counts jobs, so it takes time on a large database; ``deep`` reads all of it and
        checks that it is sound. What cannot be read any more is a finding, not an error.
        """
        findings: list[Finding] = []
        try:
            for finding in self.store.examine(deep=deep):
                findings.append(finding)
            findings.extend(findings_of(self))
        except StoreCorrupt as error:
            findings.append(judge("reading", True, error.detail, error.fix))
        return findings
