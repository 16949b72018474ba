"""``python -m jobq``: the same as the command ``jobq``."""

import sys

from jobq.cli import main

if __name__ == "__main__":
    sys.exit(main())
