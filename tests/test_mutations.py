"""The places that ``tests.mutations`` breaks are there."""

import shutil
from pathlib import Path

import pytest

from tests.mutations import BREAKS, ROOT, Break


@pytest.mark.parametrize("one", [pytest.param(one, id=one.what.replace(" ", "-")) for one in BREAKS])
def test_a_place_to_break_is_there_once(one: Break, tmp_path: Path) -> None:
    """A break changes its file; one whose place has moved would show nothing."""
    target = tmp_path / one.file
    target.parent.mkdir(parents=True)
    shutil.copy(ROOT / one.file, target)

    one.apply(tmp_path)

    assert target.read_text() != (ROOT / one.file).read_text()
