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


class Skips:
    """Remembers why whole files were skipped: pytest counts their cases as not collected."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.reasons.append(report.longrepr[2])  # after the file and the line


class MissingLowerings:
    """Remembers files of the package that an import did not find. A graph whose other values are
    computed all the same hides the error, and a dependency that is missing."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Called when no other finder has found the module."""
        if name.startswith("torch_xla_lite.lowering."):
            self.names.add(name.rpartition(".")[2])


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
        # Without it pytest reads the test files in all folders above, such as /tmp.
        f"--confcutdir={os.getcwd()}",
        "--import-mode=importlib",
        "-pno:cacheprovider",
        # Plugins of other packages take 0.13 s.
        "--disable-plugin-autoload",
        "-p_hypothesis_pytestplugin",
    ]
    skips = Skips()
    plugins: list[object] = [pytest_plugin, skips]
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
    missing = MissingLowerings()
    sys.meta_path.append(missing)
    code = pytest.main(options + arguments, plugins=plugins)
    if missing.names:
        names = ", ".join(f'"{name}"' for name in sorted(missing.names))
        print(
            f"error: graphs of this test need lowerings that it lacks; in its BUILD file: {names}"
        )
        return 1
    # With a filter or shards, or without a library, there may be no test to run, which is otherwise
    # an error.
    is_nothing_left = wanted or shards > 1 or skips.reasons
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and is_nothing_left:
        print(*skips.reasons or ["No case was selected."], sep="\n")
        return 0
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
