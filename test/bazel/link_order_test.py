"""USE_PRIORITIZED_TEXT_FOR_LD=1 places the most used functions side by side."""

import re
import subprocess
from pathlib import Path

from bazel.link_order import generate
from test.bazel.made import made

_ORDERED = made("test/bazel/libtorch_xla_lite.so")


def test_listed_functions_are_first_and_in_the_order_of_the_list():
    command = ["nm", "--numeric-sort", _ORDERED]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Compilers add suffixes such as .isra.0, and a function may have two names.
    found = re.findall(r"^(\w+) [tTwW] (_Z[^.\s]+)", listed, re.MULTILINE)
    addresses = {name: address for address, name in reversed(found)}
    order = generate.read_symbols(Path("bazel/link_order/symbols.txt").read_text())
    placed = [addresses[name] for name in order if name in addresses]
    assert len(placed) > 20
    assert placed == sorted({address for address, _ in found})[: len(placed)]
