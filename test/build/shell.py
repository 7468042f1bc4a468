"""Programs that tests put in the place of others, and commands without the rights of root."""

import os
from pathlib import Path

# Before the words of a command. root may read and write all files; without these capabilities it is
# bound to permissions as others are.
AS_A_USER = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
)


def program(file: Path, script: str) -> Path:
    """Writes a shell script that can be run, also over an older one, and returns it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file
