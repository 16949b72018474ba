"""``jobq --print-completion``."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Answer

Cli = Callable[..., Answer]

#: Completes the command line that follows, as bash does when Tab is pressed, and prints what it offers.
TAB = """
source completion
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
$(complete -p jobq | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_bash_completes_verbs_and_options(cli: Cli, tmp_path: Path) -> None:
    """The printed script works in bash."""
    pytest.importorskip("shtab")
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    (tmp_path / "completion").write_text(cli("--print-completion", "bash").out)

    def tab(*words: str) -> set[str]:
        command = ["bash", "--norc", "-c", TAB, "bash", *words]
        return set(subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.split())

    assert tab("jobq", "job", "re") == {"requeue", "reschedule", "retriage"}
    assert {"--burst", "--max-jobs"} <= tab("jobq", "work", "--")


def test_zsh_gets_a_script_too(cli: Cli) -> None:
    """The script of zsh is printed and says so in its first line."""
    pytest.importorskip("shtab")

    answer = cli("--print-completion", "zsh")

    assert (answer.code, answer.out.splitlines()[0]) == (0, "#compdef jobq")


def test_unknown_shell_is_a_usage_error(cli: Cli) -> None:
    """The known shells are named."""
    pytest.importorskip("shtab")

    answer = cli("--print-completion", "dos")

    assert answer.code == 2
    assert "'dos' is not one of bash, zsh" in answer.err


def test_without_the_extra_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where shtab is not installed there is a sentence and what to do."""
    monkeypatch.setitem(sys.modules, "shtab", None)

    answer = cli("--print-completion", "bash")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err == (
        "error: completion needs shtab, which is not installed\n"
        "fix: Install jobq with the extra cli: pip install 'jobq[cli]'.\n"
    )
