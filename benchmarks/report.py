"""How every benchmark reports: the machine and versions on top, then one row per figure with median, min and max."""

import json
import os
import platform
import resource
import statistics
import sys
from collections.abc import Sequence

import apsw
import attrs


@attrs.frozen(kw_only=True)
class Figure:
    """One measured figure: all its samples in one unit."""

    name: str
    unit: str
    samples: Sequence[float]

    @property
    def median(self) -> float:
        """The middle of the samples."""
        return statistics.median(self.samples)


@attrs.frozen(kw_only=True)
class Report:
    """The answer to one question."""

    question: str
    figures: Sequence[Figure]
    #: Which commits are synced, where anything is committed.
    durability: str = ""
    #: What the figures come to, as ratios within this run: name, value, what it is held against.
    ratios: Sequence[tuple[str, float, str]] = ()
    notes: Sequence[str] = ()

    def as_json(self) -> str:
        """Return the report as one JSON document."""
        document = {
            "question": self.question,
            "machine": self._top(),
            "figures": [
                {"name": f.name, "unit": f.unit, "median": f.median, "min": min(f.samples), "max": max(f.samples)}
                for f in self.figures
            ],
            "ratios": [{"name": name, "value": value, "expected": expected} for name, value, expected in self.ratios],
            "notes": list(self.notes),
        }
        return json.dumps(document, indent=2)

    def as_text(self) -> str:
        """Return the report as a table for people."""
        width = max(len(figure.name) for figure in self.figures)
        lines = [self.question, *(f"  {key}: {value}" for key, value in self._top().items()), ""]
        lines.append(f"  {'':{width}}  {'median':>10}  {'min':>10}  {'max':>10}")
        for f in self.figures:
            digits = 1 if max(f.samples) >= 10 else 2
            numbers = "  ".join(f"{value:10,.{digits}f}" for value in (f.median, min(f.samples), max(f.samples)))
            lines.append(f"  {f.name:{width}}  {numbers}  {f.unit}")
        if self.ratios:
            lines.append("")
        lines.extend(f"  {name}: {value:.2f} ({expected})" for name, value, expected in self.ratios)
        lines.extend(f"  {note}" for note in self.notes)
        return "\n".join(lines)

    def _top(self) -> dict[str, str]:
        return machine() | ({"durability": self.durability} if self.durability else {})


def machine() -> dict[str, str]:
    """Return what a figure depends on besides the code."""
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores{_processor()}",
        "load": f"{os.getloadavg()[0]:.1f} processes wanted a core in the last minute",
        "python": platform.python_version(),
        "apsw": f"{apsw.apsw_version()} with SQLite {apsw.sqlite_lib_version()}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        return ""
    return f" of {names[0]}" if names else ""


def peak_memory_mb() -> float:
    """Return the most resident memory that this process ever had, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
