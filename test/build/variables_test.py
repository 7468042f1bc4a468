"""One list of environment variables, whoever reads them."""

import re

from bazel.pybuild.options import VARIABLES
from test.build.tree import ROOT, source_files

# Set by ourselves for repository rules, in .bazelrc.generated; no user ever sets them.
_OF_RULES = {
    "TORCH_XLA_LITE_CUDA_CODES",
    "TORCH_XLA_LITE_CUDA_EVIDENCE",
    "TORCH_XLA_LITE_CUDA_HOME",
    "TORCH_XLA_LITE_CUDA_PACKAGED",
    "TORCH_XLA_LITE_CUDA_VERSION",
    "TORCH_XLA_LITE_FINGERPRINT",
    "TORCH_XLA_LITE_PYTHON",
}

# In quotes, as Python and Starlark read a variable, or after a dollar sign, as a shell does.
_READ = re.compile(r"""(?:"|'|\$\{?)(TORCH_XLA_LITE_[A-Z_]*[A-Z])\b""")


def test_every_variable_that_the_sources_read_is_in_the_table():
    read = {
        name
        for file in source_files("bazel", "scripts", "setup.py", "third_party", "torch_xla_lite")
        for name in _READ.findall((ROOT / file).read_text())
    }
    assert read <= {variable.name for variable in VARIABLES} | _OF_RULES
    assert "TORCH_XLA_LITE_IR_DEBUG" in read
