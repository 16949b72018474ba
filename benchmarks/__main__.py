"""Run benchmarks: ``python -m benchmarks [name ...] [--json]``; without a name, all of them."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

#: A file that can be run as a benchmark is one: the others are what those share.
NAMES = tuple(sorted(file.stem for file in Path(__file__).parent.glob("*.py") if "\ndef run(" in file.read_text()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks one after the other and print their reports."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure jobq on this machine.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to measure: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON document for each benchmark")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; there are: {', '.join(NAMES)}")
    for name in options.names or NAMES:
        report = importlib.import_module(f"benchmarks.{name}").run()
        print(report.as_json() if options.json else report.as_text(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
