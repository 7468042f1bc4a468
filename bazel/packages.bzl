"""The folders with a BUILD file, without the root. Written by scripts/python_deps.py."""

PACKAGES = ["bazel", "bazel/link_order", "bazel/pybuild", "bazel/pybuild/cache", "bazel/pybuild/call",
    "bazel/pybuild/commands", "bazel/pybuild/dist", "bazel/pybuild/install", "bazel/pybuild/machine",
    "bazel/pybuild/why", "docs", "scripts", "scripts/bench", "scripts/ci", "scripts/repos", "test", "test/bazel",
    "test/bazel/cuda", "test/build", "test/cache", "test/csrc/device", "test/csrc/dispatch", "test/csrc/ffi",
    "test/csrc/interpreter", "test/csrc/ir", "test/csrc/kernels", "test/csrc/runtime", "test/csrc/tensor",
    "test/extension", "test/extension/example", "test/extension/example/xla_isotonic", "test/extension/workspace",
    "test/lint", "test/mesh", "test/models", "test/programs", "test/python", "test/python/lowering", "test/scripts",
    "test/scripts/repos", "test/setup_py", "test/third_party", "third_party", "third_party/bazel_rules",
    "third_party/bazel_rules/modules/remote_coverage_tools", "third_party/compiler", "third_party/cuda",
    "third_party/googletest", "third_party/jaxlib", "third_party/pybind11", "third_party/python", "third_party/torch",
    "third_party/torch_xla_lite_lib", "torch_xla_lite", "torch_xla_lite/commands", "torch_xla_lite/compiler",
    "torch_xla_lite/csrc", "torch_xla_lite/csrc/device", "torch_xla_lite/csrc/explicit", "torch_xla_lite/csrc/ffi",
    "torch_xla_lite/csrc/infer", "torch_xla_lite/csrc/interpreter", "torch_xla_lite/csrc/ir",
    "torch_xla_lite/csrc/kernels", "torch_xla_lite/csrc/ops", "torch_xla_lite/csrc/python",
    "torch_xla_lite/csrc/record", "torch_xla_lite/csrc/runtime", "torch_xla_lite/csrc/tensor", "torch_xla_lite/debug",
    "torch_xla_lite/examples", "torch_xla_lite/lowering", "torch_xla_lite/lowering/base", "torch_xla_lite/startup",
    "torch_xla_lite/torch_hooks", "torch_xla_lite/utils"]
