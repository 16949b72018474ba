"""SQLite's result codes become the four classes of store errors, and nothing else does."""

import errno

import apsw
import pytest

from jobq.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from jobq.store.sqlite.faults import again, classify, reraise, translate


@pytest.mark.parametrize(
    ("code", "number", "expected"),
    [
        pytest.param(apsw.SQLITE_BUSY, 0, StoreBusy, id="busy"),
        pytest.param(apsw.SQLITE_BUSY_SNAPSHOT, 0, StoreBusy, id="busy-snapshot"),
        pytest.param(apsw.SQLITE_BUSY_RECOVERY, 0, StoreBusy, id="busy-recovery"),
        pytest.param(apsw.SQLITE_LOCKED, 0, StoreBusy, id="locked"),
        pytest.param(apsw.SQLITE_LOCKED_SHAREDCACHE, 0, StoreBusy, id="locked-shared-cache"),
        pytest.param(apsw.SQLITE_PROTOCOL, 0, StoreBusy, id="protocol"),
        pytest.param(apsw.SQLITE_CANTOPEN, 0, StoreUnavailable, id="cantopen"),
        pytest.param(apsw.SQLITE_READONLY, 0, StoreUnavailable, id="readonly"),
        pytest.param(apsw.SQLITE_READONLY_DIRECTORY, 0, StoreUnavailable, id="readonly-directory"),
        pytest.param(apsw.SQLITE_PERM, 0, StoreUnavailable, id="perm"),
        pytest.param(apsw.SQLITE_AUTH, 0, StoreUnavailable, id="auth"),
        pytest.param(apsw.SQLITE_IOERR_WRITE, errno.EIO, StoreUnavailable, id="ioerr"),
        pytest.param(apsw.SQLITE_IOERR_FSYNC, 0, StoreUnavailable, id="ioerr-no-errno"),
        pytest.param(apsw.SQLITE_IOERR_WRITE, errno.ENOSPC, StoreFull, id="ioerr-enospc"),
        pytest.param(apsw.SQLITE_IOERR_WRITE, errno.EDQUOT, StoreFull, id="ioerr-edquot"),
        pytest.param(apsw.SQLITE_IOERR_WRITE, errno.EFBIG, StoreFull, id="ioerr-efbig"),
        pytest.param(apsw.SQLITE_IOERR_SHMSIZE, 0, StoreFull, id="ioerr-shmsize"),
        pytest.param(apsw.SQLITE_FULL, 0, StoreFull, id="full"),
        pytest.param(apsw.SQLITE_CORRUPT, 0, StoreCorrupt, id="corrupt"),
        pytest.param(apsw.SQLITE_CORRUPT_INDEX, 0, StoreCorrupt, id="corrupt-index"),
        pytest.param(apsw.SQLITE_NOTADB, 0, StoreCorrupt, id="notadb"),
        pytest.param(apsw.SQLITE_READONLY_DBMOVED, 0, StoreCorrupt, id="moved"),
        pytest.param(apsw.SQLITE_CONSTRAINT_UNIQUE, errno.ENOSPC, None, id="constraint"),
        pytest.param(apsw.SQLITE_ERROR, 0, None, id="sql"),
        pytest.param(apsw.SQLITE_MISUSE, 0, None, id="misuse"),
    ],
)
def test_result_codes_decide_the_class(code: int, number: int, expected: type[StoreError] | None) -> None:
    """The extended result code and the system's errno decide the class in one table."""
    assert classify(code, number) is expected


def _error(code: int) -> apsw.Error:
    error: apsw.Error = apsw.exception_for(code)  # type: ignore[assignment]
    return error


def test_translation_keeps_path_code_and_detail() -> None:
    """A translated error names the file and carries SQLite's code."""
    fault = translate(_error(apsw.SQLITE_BUSY_SNAPSHOT), "/x/jobs.db")

    assert isinstance(fault, StoreBusy)
    assert (fault.path, fault.code) == ("/x/jobs.db", apsw.SQLITE_BUSY_SNAPSHOT)


@pytest.mark.parametrize(
    ("code", "unknown"),
    [
        pytest.param(apsw.SQLITE_FULL, True, id="full"),
        pytest.param(apsw.SQLITE_IOERR_FSYNC, True, id="io"),
        pytest.param(apsw.SQLITE_BUSY, False, id="busy"),
    ],
)
def test_failed_commit_has_an_unknown_outcome_unless_nothing_happened(code: int, unknown: bool) -> None:
    """A failed COMMIT leaves the outcome open, but for BUSY, after which nothing was done."""
    fault = translate(_error(code), "x", outcome_unknown=True)

    assert isinstance(fault, StoreError)
    assert fault.outcome_unknown is unknown


def test_other_errors_pass_through_untouched() -> None:
    """A constraint or a syntax error is a bug or the domain's matter and stays the object it is."""
    error = _error(apsw.SQLITE_CONSTRAINT)

    assert translate(error, "x") is error
    with pytest.raises(apsw.ConstraintError) as caught:
        reraise(error, "x")
    assert caught.value.__cause__ is None


def test_commit_over_an_unfinished_statement_is_no_contention() -> None:
    """SQLite calls it BUSY, but waiting would not help, so it is not StoreBusy."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (x)").fetchall()
    connection.execute("BEGIN")
    unfinished = connection.execute("INSERT INTO t VALUES (1), (2) RETURNING x")
    with pytest.raises(apsw.BusyError) as caught:
        connection.execute("COMMIT")
    unfinished.close()
    connection.close()

    assert translate(caught.value, "x") is caught.value


def test_each_thread_gets_an_error_object_of_its_own() -> None:
    """The copy for one more thread equals the error in everything but identity."""
    error = StoreFull("x", "no space", code=13, outcome_unknown=True)

    copy = again(error)

    assert copy is not error
    assert isinstance(copy, StoreFull)
    assert (copy.path, copy.detail, copy.code, copy.outcome_unknown) == ("x", "no space", 13, True)
