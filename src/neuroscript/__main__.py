"""``python -m neuroscript``."""

from __future__ import annotations

import sys

from neuroscript.cli import main

if __name__ == "__main__":
    sys.exit(main())
