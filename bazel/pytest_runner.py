"""Runs test files by pytest the way Bazel expects a test to behave.

Started by the launcher of a lite_py_test, in the root of its runfiles:

    python -P bazel/pytest_runner.py test/python/device_test.py [pytest arguments]

Honours `--test_filter` (as pytest's -k), sharding, the XML report and the temporary folder.
Hypothesis and torch draw the same numbers each time, and others in each run of
`--runs_per_test=20`.
"""

import os
import sys
from pathlib import Path

import pytest


class TorchSeed:
    """Lets each test draw the same numbers from torch, which begins anywhere by itself."""

    def __init__(self, seed: int):
        self.seed = seed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        # The runner does not import torch; if a test does, it has done so by now.
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.default_generator.manual_seed(self.seed)


class Shard:
    """Keeps every n-th test, when Bazel asks to run one part of a sharded target."""

    def __init__(self, index: int, total: int):
        self.index = index
        self.total = total

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = items[self.index :: self.total]


def main(arguments: list[str]) -> int:
    # Bazel keeps a result until an input changes, so equal inputs draw equal numbers. Each run of
    # --runs_per_test gives each run a different number.
    seed = int(os.environ.get("TEST_RANDOM_SEED", "0"))
    options = [
        # Nothing is read or written but what the target declares: no pyproject.toml, no cache in
        # the source tree.
        f"--config-file={os.devnull}",
        f"--rootdir={os.getcwd()}",
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
        f"--hypothesis-seed={seed}",
    ]
    plugins: list[object] = [TorchSeed(seed)]
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
        # Tells Bazel that this program knows about shards.
        Path(os.environ["TEST_SHARD_STATUS_FILE"]).touch()
    code = pytest.main(options + arguments, plugins=plugins)
    # A filter or a shard may leave this target nothing to do; a target without tests is an error.
    nothing_left = code == pytest.ExitCode.NO_TESTS_COLLECTED and (wanted or shards > 1)
    return 0 if nothing_left else int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
