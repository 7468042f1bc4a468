"""Runs the command line for `python -m torch_xla_lite`; see commands/."""

import sys

from .commands import main

sys.exit(main())
