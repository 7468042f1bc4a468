"""Runs test files with pytest as a test program of Bazel.

The launcher of a lite_py_test starts it in the root of the runfiles:

    python -P bazel/pytest_runner.py test/python/device_test.py [pytest arguments]

It supports `--test_filter` (as pytest's -k), sharding, the XML report and the temporary folder.
pytest_plugin.py has what tests need below plain pytest, too.
"""

import os
import sys
from pathlib import Path

import pytest

from bazel import pytest_plugin


class Shard:
    """Selects every n-th test, for one part of a sharded target."""

    def __init__(self, index: int, total: int):
        self.index = index
        self.total = total

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = items[self.index :: self.total]


def main(arguments: list[str]) -> int:
    options = [
        # Only declared files are used: no pyproject.toml, no cache in the source tree.
        f"--config-file={os.devnull}",
        f"--rootdir={os.getcwd()}",
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
    ]
    plugins: list[object] = [pytest_plugin]
    temporary = os.environ.get("TEST_TMPDIR")
    if temporary:
        options.append(f"--basetemp={Path(temporary) / 'pytest'}")
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(temporary) / "hypothesis"))
    report = os.environ.get("XML_OUTPUT_FILE")
    if report:
        options.append(f"--junitxml={report}")
    wanted = os.environ.get("TESTBRIDGE_TEST_ONLY")
    if wanted:
        options += ["-k", wanted]
    shards = int(os.environ.get("TEST_TOTAL_SHARDS", "1"))
    if shards > 1:
        plugins.append(Shard(int(os.environ["TEST_SHARD_INDEX"]), shards))
        # This file tells Bazel that the program supports sharding.
        Path(os.environ["TEST_SHARD_STATUS_FILE"]).touch()
    code = pytest.main(options + arguments, plugins=plugins)
    # With a filter or shards, there may be no test to run; otherwise that is an error.
    nothing_left = code == pytest.ExitCode.NO_TESTS_COLLECTED and (wanted or shards > 1)
    return 0 if nothing_left else int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
