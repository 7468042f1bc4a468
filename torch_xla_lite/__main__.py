"""python -m torch_xla_lite: the command line; see commands/."""

import sys

from .commands import main

sys.exit(main())
