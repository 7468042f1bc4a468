"""Reads the most frequent functions from the output of callgrind."""

from collections import Counter

from scripts.measure_link_order import counts, hottest

_PROFILE = """\
events: Ir

ob=/venv/torch/lib/libtorch_cpu.so
fl=???
fn=_ZTorch
0 1000

ob=/tree/torch_xla_lite/lib/libtorch_xla_lite.so
fl=???
fn=_ZRecord
0 50
cob=/venv/torch/lib/libtorch_cpu.so
cfn=_ZTorch
calls=3 0
0 900
0 20

fn=_ZRead.isra.0
0 30

fn=_ZRead'2
0 5

fn=0x00000000000123
0 7
"""


def test_instructions_of_called_functions_do_not_count():
    assert counts(_PROFILE)["_ZRecord"] == 70


def test_functions_of_other_libraries_and_without_names_do_not_count():
    assert set(counts(_PROFILE)) == {"_ZRecord", "_ZRead"}


def test_parts_and_recursive_calls_count_as_the_function():
    assert counts(_PROFILE)["_ZRead"] == 35


def test_the_hottest_are_the_smallest_set_with_the_share():
    assert hottest(Counter({"_Za": 5, "_Zb": 90, "_Zc": 5}), 0.95) == ["_Zb", "_Za"]
