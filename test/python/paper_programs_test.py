"""Graphs are compiled for an H100 and a TPU that exist on paper: what those compilers refuse, and
what ends their process.

Training steps of models are compiled in test/models/models_test.py, those on a mesh in
test/mesh/paper_mesh_test.py.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import jax
import pytest
import torch

import torch_xla_lite  # noqa: F401
from scripts import op_coverage, op_results
from scripts.bench import paper_devices, paper_graphs
from test.python import database
from torch_xla_lite import export
from torch_xla_lite.lowering.base import target

# Each part of the database of ops is a test.
PARTS = 16

# An H100 on paper has no kernels, neither CUDA's nor those of this project, and calls no Python.
_ABSENT = re.compile("No FFI handler registered|Unknown backend")


def needs(kind: str) -> None:
    if not paper_devices.is_installed(kind):
        pytest.skip(f"see {paper_devices.__file__}")


@pytest.mark.parametrize(
    ("kind", "package"),
    [("h100", r"gpu_compiler jax-cuda13-pjrt==\d"), ("v5e", r"tpu_compiler '?libtpu[=~]=\d")],
)
def test_without_the_compiler_the_error_names_the_command(
    kind: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(paper_devices, "_FOLDER", tmp_path)
    with pytest.raises(RuntimeError, match=f"pip install .*{package}"):
        paper_devices.devices(kind)


@pytest.mark.parametrize(
    ("kind", "count", "layout"),
    [
        ("v5e", 1, "v5e:2x2"),
        ("v6e", 16, "v6e:4x4"),
        ("v5p", 8, "v5p:2x2x2"),
        ("v5p", 512, "v5p:8x8x8"),
    ],
)
def test_chips_are_a_grid_of_whole_machines(kind: str, count: int, layout: str):
    assert paper_devices._layout(kind, count) == layout


@pytest.mark.nightly
@pytest.mark.parametrize("kind", paper_devices.KINDS)
@pytest.mark.parametrize("count", [1, 2, 16, 512])
def test_there_are_devices_of_each_kind(kind: str, count: int):
    needs(kind)
    before = dict(os.environ)
    devices = paper_devices.devices(kind, count)
    assert len(devices) == count
    assert {device.platform for device in devices} == {paper_devices.platform(kind)}
    assert dict(os.environ) == before


CASES = [("h100", "float32"), ("v5e", "float32"), ("v5e", "bfloat16")]

# What libtpu 0.0.42.1 takes minutes to compile, and where it ends the process: a conversion from
# complex128 in the gradients of eigenvalues, which has not been found.
KNOWN = {
    "nn_functional_conv3d",
    "polygamma_polygamma_n_0",
    "polygamma_polygamma_n_1",
    "linalg_eig",
    "linalg_eigvals",
}


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_the_ops_of_the_database(kind: str, dtype: str, part: int):
    """In a process of its own, because some compilers end it where they fail."""
    needs(kind)
    child = op_coverage._Child(num_samples=2, kind=kind)
    found = {}
    for name in database.part(part, PARTS, ()):
        mode = "backward" if database.ops()[name].supports_autograd else "forward"
        found[name] = child.run(op_results.Job(name, mode, dtype), timeout=300).on_paper
    child._stop()
    fine = op_results.ON_PAPER
    refused = {name: x for name, x in found.items() if x not in fine and not _ABSENT.search(x)}
    assert refused.keys() <= (KNOWN if kind == "v5e" else set())
    assert list(found.values()).count("compiles") > len(found) / 2


def _refused_by_compilers() -> dict[str, Callable[[], torch.Tensor]]:
    a = torch.rand(4, 4).to("jax")
    return {
        "aten::_linalg_svd": lambda: torch.linalg.svd(a).U,
        "aten::linalg_eig": lambda: torch.linalg.eig(a).eigenvectors.abs(),
        "aten::_linalg_eigvals": lambda: torch.linalg.eigvals(a).abs(),
        "aten::_to_copy": lambda: a.to(torch.complex128).real,
        "aten::abs": lambda: torch.complex(a.double(), a.double()).abs(),
    }


@pytest.mark.nightly
@pytest.mark.parametrize("op", _refused_by_compilers())
def test_what_ends_the_compiler_for_tpus_runs_on_the_host(op: str):
    needs("v5e")
    with paper_graphs.compiled_for("v5e") as graphs:
        _refused_by_compilers()[op]().sum().item()
    assert [graph.error for graph in graphs if graph.error] == []
    assert op in {on_host for graph in graphs for on_host in graph.on_host}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["h100", "v5e"])
def test_an_exported_model_compiles(kind: str):
    needs(kind)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    program = torch.export.export(layer, (torch.randn(2, 5, 16),))
    platform = {"h100": "cuda", "v5e": "tpu"}[kind]
    exported = export.export(program, weights="inside", platforms=[platform]).program
    place = jax.sharding.SingleDeviceSharding(paper_devices.devices(kind)[0])
    (x,) = exported.in_avals
    struct = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
    compiled = jax.jit(exported.call, out_shardings=place).lower(struct).compile()
    assert compiled.as_text().startswith("HloModule")


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_accelerators_get_no_choice_made_for_cpus(platform: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(target, "_default_platform", lambda: platform)
    choices = [name for name in dir(target) if name.startswith("is_slow_at")]
    assert len(choices) >= 2
    of_cpus = [*choices, "fuses_too_much", "has_host_memory"]
    assert [name for name in of_cpus if getattr(target, name)()] == []
    assert target.compiler_options(has_loops=False) == {}
    assert target.most_scores() == 2**27 and target.rounds_products()
