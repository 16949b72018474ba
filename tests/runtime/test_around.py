"""What is entered around a run, with the job or without."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from jobq.runtime.around import given_job
from jobq.testing import running_job


def _plain() -> AbstractContextManager[Any]:
    return nullcontext("no job")


def _with_job(job: object) -> AbstractContextManager[Any]:
    return nullcontext(job)


class _Session(nullcontext[Any]):
    """A class whose argument is optional, as a database session's is: it is none for a job."""

    def __init__(self, bind: object = "own") -> None:
        super().__init__(bind)


@pytest.mark.parametrize(
    ("around", "entered"),
    [
        pytest.param(_plain, "no job", id="none"),
        pytest.param(_Session, "own", id="optional"),
        pytest.param(lambda *, unit="u": nullcontext(unit), "u", id="keyword"),
        pytest.param(lambda *many: nullcontext(many), (), id="any number"),
    ],
)
def test_factory_that_needs_no_argument_gets_none(around: Callable[..., Any], entered: object) -> None:
    """Whatever else it could take."""
    factory = given_job(around)

    assert factory is not None
    with factory(running_job()) as found:
        assert found == entered


def test_factory_that_needs_one_argument_gets_the_job() -> None:
    """A bound method, too."""
    job = running_job()

    for around in (_with_job, lambda job: nullcontext(job)):
        factory = given_job(around)
        assert factory is not None
        with factory(job) as found:
            assert found is job
    assert given_job(None) is None
