"""Imports `torch_xla_lite.lowering` without its parent package: lowerings need only torch and jax."""

import pathlib
import sys
import types

if "torch_xla_lite" not in sys.modules:
    _parent = types.ModuleType("torch_xla_lite")
    _parent.__path__ = [str(pathlib.Path(__file__).parents[3] / "torch_xla_lite")]
    sys.modules["torch_xla_lite"] = _parent
