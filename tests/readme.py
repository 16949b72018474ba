"""README.rst of the project, parsed once for all tests of what it says."""

from functools import cache
from pathlib import Path

import docutils.core
import docutils.nodes

TEXT = (Path(__file__).resolve().parents[1] / "README.rst").read_text(encoding="utf-8")


@cache
def parsed() -> docutils.nodes.document:
    """Return the document, which nobody may change; a warning of docutils is an error."""
    settings = {"halt_level": 2, "report_level": 2, "syntax_highlight": "none", "warning_stream": False}
    return docutils.core.publish_doctree(TEXT, settings_overrides=settings)
