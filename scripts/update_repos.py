#!/usr/bin/env python3
"""Updates checkouts of PyTorch, torchvision, PyTorch/XLA and this project; see --help."""

import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("error: update_repos.py needs Python 3.11 or newer; run it with python3.11 or newer.")

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    # The folder of this file is on the path; its modules are imported by their names from the root.
    sys.path[0] = str(ROOT)
    try:
        from scripts.repos.cli import main

        sys.exit(main(sys.argv[1:], ROOT))
    except KeyboardInterrupt:
        # Before anything was done; `main` lets the current step come to its end.
        sys.exit(130)
