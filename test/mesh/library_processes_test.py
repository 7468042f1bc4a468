"""Libraries of training run in several processes, unchanged, as in one."""

import itertools
import json
import re
from pathlib import Path

import pytest

from test.models import libraries
from test.python import programs
from torch_xla_lite import launch

pytestmark = pytest.mark.nightly
_PROGRAM = Path(__file__).with_name("library_training.py")
_MODULES = {"accelerate": "accelerate", "lightning": "lightning.pytorch"}


_CELLS = itertools.product(("accelerate", "lightning", "transformers"), ("dp", "fsdp"))


@pytest.mark.parametrize("cell", _CELLS, ids=str)
def test_processes_train_as_one(
    cell: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    library, mode = cell
    libraries.require(_MODULES.get(library, library))
    found = []
    for count in (1, 2):
        folder = tmp_path / str(count)
        command = [*programs.python(), str(_PROGRAM), library, mode, str(folder)]
        status = launch.run(command, count)
        output = "".join(capfd.readouterr())
        assert status == 0, output
        results = [json.loads(text) for text in re.findall(r"RESULT (.*)", output)]
        assert sorted(writes for *_, writes in results) == [*(False,) * (count - 1), True]
        found += results
        assert len(found[0][0]) == 4
        saved = {path.suffix for path in folder.rglob("*") if path.is_file()}
        assert saved or library == "accelerate" or (library, mode) == ("transformers", "fsdp")
    for losses, total, _ in found[1:]:
        assert losses == pytest.approx(found[0][0], abs=1e-5)
        assert total == pytest.approx(found[0][1], abs=1e-4)
