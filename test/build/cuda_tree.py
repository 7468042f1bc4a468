"""What tests of CUDA builds need: a toolkit, a torch that says it is built for CUDA, and a small
tree to build with both. None of it needs a GPU.
"""

import re
import sys
from pathlib import Path

from test.build.nested import Nested
from test.build.nvidia import toolkit

_SMALL = Path(__file__).parent / "testdata" / "small"

_SCALE = """#include "torch_xla_lite/factor.h"

namespace {
template <typename T>
__global__ void Scale(T* values) {
  values[threadIdx.x] *= kFactor;
}
}  // namespace

void ScaleAll(float* values, cudaStream_t stream) { Scale<<<1, 32, 0, stream>>>(values); }
"""

_FILL = """__global__ void Fill(int* values) { values[threadIdx.x] = 1; }

void FillAll(int* values, cudaStream_t stream) { Fill<<<1, 32, 0, stream>>>(values); }
"""


class CudaTree(Nested):
    """A tree whose torch is built for CUDA 13.0, and whose package can have a CUDA library."""

    def __init__(self, folder: Path, shared: Path):
        super().__init__(folder, shared)
        pretend_cuda_torch(self.site)
        build_file = self.root / "torch_xla_lite" / "BUILD.bazel"
        addition = (_SMALL / "cuda.BUILD.bazel.txt").read_text()
        build_file.write_text(build_file.read_text() + addition)
        self.write("scale.cu", _SCALE)
        self.write("fill.cu", _FILL)
        self.write("factor.h", "#pragma once\nconstexpr int kFactor = 2;\n")
        self.write("unread.h", "#pragma once\n")

    @property
    def library(self) -> Path:
        """The place of the CUDA library."""
        return self.root / "torch_xla_lite" / "lib" / "libtorch_xla_lite_cuda.so"

    def environ(self, **changes: str) -> dict[str, str]:
        """Variables for a command in the tree."""
        wishes = {"CUDA_HOME": str(toolkit()), "TORCH_CUDA_ARCH_LIST": "8.0;9.0+PTX"}
        return super().environ(**{**wishes, **changes})


def pretend_cuda_torch(site: Path) -> None:
    """Puts a torch into an environment that is ours but for the version that it tells."""
    ours = next(Path(folder) / "torch" for folder in sys.path if (Path(folder) / "torch").exists())
    (site / "torch").mkdir()
    for entry in ours.iterdir():
        if entry.name not in ("version.py", "__pycache__"):
            (site / "torch" / entry.name).symlink_to(entry)
    text = (ours / "version.py").read_text()
    version = re.search(r"__version__ = '([\d.]+)", text)[1]
    text = re.sub(r"__version__ = '.*'", f"__version__ = '{version}+cu130'", text)
    text = re.sub(r"^cuda(.*)= None", r"cuda\1= '13.0'", text, flags=re.MULTILINE)
    (site / "torch" / "version.py").write_text(text)
    info = site / f"torch-{version}+cu130.dist-info"
    info.mkdir()
    (real,) = ours.parent.glob("torch-*.dist-info")
    (info / "licenses").symlink_to(real / "licenses")
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch\nVersion: {version}+cu130\n"
    )
