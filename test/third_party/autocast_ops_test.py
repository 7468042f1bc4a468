"""third_party/torch/autocast_ops.py reads the macros of torch's header."""

import pytest

from third_party.torch import autocast_ops

HEADER = """\
#define KERNEL(...) m.impl(__VA_ARGS__)
#define AT_FORALL_FP32(_) \\
  _(acos)                 \\
  _(pow, Tensor_Scalar)

#define AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(_) \\
  _(ADD_NS(norm),                                   \\
    "norm.Scalar",                                  \\
    Tensor(const Tensor&, const Scalar&))
"""


def test_ops_have_the_names_of_their_overloads():
    assert autocast_ops.ops(HEADER, "FP32") == ["aten::acos", "aten::pow.Tensor_Scalar"]


def test_a_name_may_be_given_as_text():
    found = autocast_ops.ops(HEADER, "DIFFERENT_REDISPATCH_SIGNATURE")
    assert found == ["aten::norm.Scalar"]


def test_a_policy_that_torch_has_renamed_is_an_error():
    with pytest.raises(SystemExit, match="no AT_FORALL_PROMOTE: adapt"):
        autocast_ops.ops(HEADER, "PROMOTE")
