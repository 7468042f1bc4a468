"""Division of torch's headers into layers."""

from pathlib import Path

from third_party.torch import layers


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_closure_follows_both_forms_of_include(tmp_path: Path):
    include = _tree(
        tmp_path,
        {
            "a/root.h": '#include <b/angle.h>\n  #  include "beside.h"\n',
            "a/beside.h": "#include <vector>\n",
            "b/angle.h": "",
            "b/other.h": "",
        },
    )
    assert layers.closure(include, {"a/root.h"}) == {"a/root.h", "a/beside.h", "b/angle.h"}


def test_headers_that_include_each_other_are_followed_once(tmp_path: Path):
    include = _tree(tmp_path, {"a.h": "#include <b.h>", "b.h": "#include <a.h>"})
    assert layers.closure(include, {"a.h"}) == {"a.h", "b.h"}


def test_the_headers_of_all_operators_are_not_followed(tmp_path: Path):
    text = """\
#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#else
#include <ATen/ops/add.h>
#endif
#include <c10/core/Scalar.h>
"""
    include = _tree(
        tmp_path,
        {"a.h": text, "ATen/Functions.h": "", "ATen/ops/add.h": "", "c10/core/Scalar.h": ""},
    )
    assert layers.closure(include, {"a.h"}) == {"a.h", "ATen/ops/add.h", "c10/core/Scalar.h"}


def test_headers_of_pybind11_are_not_followed(tmp_path: Path):
    include = _tree(tmp_path, {"a.h": "#include <pybind11/pybind11.h>", "pybind11/pybind11.h": ""})
    assert layers.closure(include, {"a.h"}) == {"a.h"}


def test_all_words_of_the_headers_are_found(tmp_path: Path):
    text = {"a.h": "namespace c10 { int A_1(b::C<d>); }  // \xe9", "b/b.h": "#define E(x) x##_f"}
    include = _tree(tmp_path, text)
    found = layers.words(include, ["a.h", "b/b.h"])
    assert {"namespace", "c10", "A_1", "b", "C", "d", "define", "E", "x", "_f"} <= found


def test_every_layer_is_listed_after_the_layers_below_it():
    found: set[str] = set()
    for layer in layers.LAYERS:
        assert set(layer.below) <= found
        found.add(layer.name)
