"""Whether a CUDA library is built, decided from files alone."""

import os
import re
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import cuda, cuda_toolkits, packages
from bazel.pybuild.options import Options, read
from bazel.pybuild.variables import Switch
from bazel.pytest_plugin import mostly_nightly
from test.build.shell import program
from test.build.toolkit import write_toolkit

_CPU = cuda.Torch("2.13.0+cpu", None, None)
_CUDA = cuda.Torch("2.13.0+cu130", "13.0", None)
_CU12 = cuda.Torch("2.13.0+cu126", "12.6", None)
_JAX = packages.Package("jax-cuda13-plugin", "0.10.2", Path("jax_cuda13_plugin-0.10.2.dist-info"))
_ROCM = cuda.Torch("2.13.0+rocm7.0", None, "7.0.51831")


@pytest.fixture
def no_standard_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without /usr/local/cuda."""
    monkeypatch.setattr(cuda_toolkits, "STANDARD", tmp_path / "usr-local-cuda")


def _decide(
    switch: Switch,
    torch: cuda.Torch,
    *nvccs: Path,
    jax: packages.Package | None = None,
    archs: str | None = None,
) -> cuda.Cuda:
    options = Options(cuda=switch, cuda_arch_list=archs)
    return cuda.decide(options, torch, jax, [(nvcc, "a test") for nvcc in nvccs], "gcc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", (None, None)),
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", ("13.0", None)),
        ("cuda = '12.4'\nhip = None\n", ("12.4", None)),
        ("cuda = None\nhip: Optional[str] = '7.0.51831'\n", (None, "7.0.51831")),
    ],
)
def test_what_torch_was_built_for_is_read_from_its_version_file(
    tmp_path: Path, text: str, expected: tuple[str | None, str | None]
):
    (tmp_path / "version.py").write_text(f"__version__ = '2.13.0'\n{text}")
    read = cuda.built_for(tmp_path / "version.py", "2.13.0")
    assert (read.cuda, read.hip) == expected


_FOR_13 = "torch 2.13.0+cu130 is built for CUDA 13.0"
# What decides: the switch, torch, jax's plugin, and the toolkits in their order.
_DECISIONS = {
    (Switch.OFF, _CUDA, None, "13.0.88"): "off: USE_CUDA=0",
    (Switch.OFF, _ROCM, None, ""): "off: USE_CUDA=0",
    (Switch.AUTO, _CUDA, None, ""): f"off: {_FOR_13}, but no toolkit of CUDA 13 was found",
    (Switch.AUTO, _CUDA, None, "12.9.41"): f"off: {_FOR_13}, but no toolkit of CUDA 13 was found",
    (Switch.AUTO, _CUDA, None, "12.9.41 13.0.88"): f"on: {_FOR_13}; toolkit 13.0.88; sm_80 ",
    (Switch.AUTO, _CPU, _JAX, "12.9.41 13.0.88"): "on: jax has its plugin for CUDA 13; toolkit 13.",
    # The kernels run on the streams of jax.
    (
        Switch.AUTO,
        _CU12,
        _JAX,
        "12.6.20 13.0.88",
    ): "on: jax has its plugin for CUDA 13; toolkit 13.",
    (Switch.ON, _CPU, None, "12.9.41"): "on: USE_CUDA=1; toolkit 12.9.41; sm_80 sm_90 compute_90",
}


@pytest.mark.parametrize(("inputs", "evidence"), _DECISIONS.items(), ids=lambda _: "")
def test_the_decision_follows_from_the_switch_the_packages_and_the_toolkits(
    tmp_path: Path,
    inputs: tuple[Switch, cuda.Torch, packages.Package | None, str],
    evidence: str,
):
    switch, torch, jax, versions = inputs
    nvccs = [write_toolkit(tmp_path / version, version) for version in versions.split()]
    decision = _decide(switch, torch, *nvccs, jax=jax)
    assert decision.evidence.startswith(evidence)
    assert decision.packaged == evidence.startswith("on")
    assert decision.packaged or decision.toolkit is None


def test_auto_stays_off_with_a_stray_toolkit_beside_a_torch_for_cpus(tmp_path: Path):
    decision = _decide(Switch.AUTO, _CPU, write_toolkit(tmp_path))
    assert not decision.packaged
    assert decision.line == "not built (torch and jax are CPU builds)"
    # For `bazel build //...` and tests.
    assert decision.toolkit is not None
    assert decision.codes == ("sm_80", "sm_90", "compute_90")


def test_a_toolkit_that_does_not_work_with_the_host_compiler_is_not_used(tmp_path: Path):
    candidates = [(write_toolkit(tmp_path), "a test")]
    decision = cuda.decide(Options(), _CUDA, None, candidates, "gcc-99")
    assert not decision.packaged
    assert decision.detail.endswith("does not work with gcc-99: unsupported GNU version!")
    with pytest.raises(BuildError, match="does not work with gcc-99: unsupported GNU version!"):
        cuda.decide(Options(cuda=Switch.ON), _CUDA, None, candidates, "gcc-99")


def test_what_is_off_for_a_reason_of_this_machine_is_recorded_without_its_paths(tmp_path: Path):
    decision = _decide(Switch.AUTO, _CUDA, write_toolkit(tmp_path, "12.9.41"))
    assert f"12.9.41 is in {tmp_path}" in decision.line
    assert str(tmp_path) not in decision.evidence


@pytest.mark.parametrize(
    ("torch", "versions", "named"),
    [
        (_CPU, [], r"no CUDA toolkit was found"),
        (_CUDA, [], r"no toolkit of CUDA 13 was found"),
        (_CUDA, ["12.9.41"], r"12\.9\.41 is in "),
    ],
)
def test_on_names_what_is_missing(
    tmp_path: Path, torch: cuda.Torch, versions: list[str], named: str
):
    nvccs = [write_toolkit(tmp_path / version, version) for version in versions]
    with pytest.raises(BuildError, match=f"USE_CUDA=1: .*{named}"):
        _decide(Switch.ON, torch, *nvccs)


def test_the_plugin_of_jax_is_found_by_its_name_and_not_imported(tmp_path: Path):
    for name in ("jax_cuda12_plugin-0.10.2", "jax_cuda13_plugin-0.10.2", "jax-0.10.2"):
        (tmp_path / f"{name}.dist-info").mkdir()
    assert cuda.plugin([str(tmp_path)]).name == "jax-cuda13-plugin"
    assert cuda.plugin([str(tmp_path / "empty")]) is None


def test_a_plugin_that_is_installed_later_makes_the_decision_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(packages, "search_path", lambda: [str(tmp_path)])
    before = cuda.depends_on(Options(), {})
    (tmp_path / "jax_cuda13_plugin-0.10.2.dist-info").mkdir()
    assert cuda.depends_on(Options(), {}) != before


@pytest.mark.parametrize(("version", "offered"), [("13.0", True), ("12.6", False)])
def test_wheels_are_offered_for_a_cuda_that_has_a_whole_toolkit_of_them(
    version: str, offered: bool
):
    with pytest.raises(BuildError) as error:
        _decide(Switch.ON, cuda.Torch(f"2.13.0+cu{version}", version, None))
    assert (f"'nvidia-cuda-nvcc=={version}.*'" in error.value.remedy) is offered
    assert ("they hold no nvcc" in error.value.remedy) is not offered


@pytest.mark.parametrize(
    "part", ["bin/cudafe++", "bin/fatbinary", "nvvm/bin/cicc", "include/crt/host_config.h"]
)
def test_on_names_the_part_that_a_toolkit_has_not(tmp_path: Path, part: str):
    nvcc = write_toolkit(tmp_path)
    (tmp_path / part).unlink()
    with pytest.raises(BuildError, match=f"not a complete toolkit: it has no {re.escape(part)}"):
        _decide(Switch.ON, _CUDA, nvcc)


_REAL = cuda_toolkits.STANDARD.resolve()


@pytest.mark.skipif(not (_REAL / "bin" / "nvcc").exists(), reason=f"there is no {_REAL}")
@pytest.mark.parametrize(
    "program", mostly_nightly(["cudafe++", "fatbinary", "ptxas"], ["cudafe++"])
)
def test_a_toolkit_with_a_broken_program_is_not_taken(tmp_path: Path, program: str):
    (tmp_path / "bin").mkdir()
    for entry in _REAL.iterdir():
        if entry.name != "bin":
            (tmp_path / entry.name).symlink_to(entry)
    for entry in (_REAL / "bin").iterdir():
        (tmp_path / "bin" / entry.name).symlink_to(entry)
    nvcc = [(tmp_path / "bin" / "nvcc", "a test")]
    toolkit, problems = cuda_toolkits.find(nvcc, "gcc", None)
    assert (toolkit.home if toolkit else problems) == tmp_path
    (tmp_path / "bin" / program).unlink()
    (tmp_path / "bin" / program).symlink_to("/bin/false")
    toolkit, (problem,) = cuda_toolkits.find(nvcc, "gcc", None)
    assert toolkit is None
    assert "does not work with gcc" in problem


@pytest.mark.parametrize("switch", [Switch.AUTO, Switch.ON])
def test_a_torch_for_rocm_is_refused(switch: Switch):
    with pytest.raises(BuildError, match=r"ROCm \(HIP 7\.0\.51831\)"):
        _decide(switch, _ROCM)


def test_use_rocm_is_an_error():
    with pytest.raises(BuildError, match="no kernels for AMD GPUs"):
        read({"USE_ROCM": "1", "USE_CUDA": "0"})


def test_a_wrong_list_of_architectures_is_an_error_only_where_it_matters(tmp_path: Path):
    nvcc = write_toolkit(tmp_path)
    assert _decide(Switch.AUTO, _CPU, nvcc, archs="Hoper").toolkit is None
    with pytest.raises(BuildError, match="Hoper"):
        _decide(Switch.AUTO, _CUDA, nvcc, archs="Hoper")


def _found(environ: dict[str, str], *folders: Path, home: str | None = None) -> list[str]:
    options = Options(cuda_home=home)
    return [place for _, place in cuda_toolkits.watched(options, environ, map(str, folders))]


@pytest.mark.usefixtures("no_standard_place")
def test_toolkits_are_looked_for_in_order_of_preference(tmp_path: Path):
    write_toolkit(tmp_path / "usr-local-cuda")
    write_toolkit(tmp_path / "path")
    write_toolkit(tmp_path / "conda", target="targets/x86_64-linux", libraries="lib")
    write_toolkit(tmp_path / "site" / "nvidia" / "cu13", libraries="lib")
    environ = {"PATH": str(tmp_path / "path" / "bin"), "CONDA_PREFIX": str(tmp_path / "conda")}
    places = _found(environ, tmp_path / "site")
    standard = str(tmp_path / "usr-local-cuda")
    assert places == ["nvcc on PATH", "CONDA_PREFIX", standard, "NVIDIA's wheels"]
    assert _found(environ, tmp_path / "site", home="/elsewhere") == ["CUDA_HOME"]


def _decide_with_cuda_home(home: Path, switch: Switch, torch: cuda.Torch) -> cuda.Cuda:
    options = Options(cuda=switch, cuda_home=str(home), cuda_home_from="CUDA_PATH")
    return cuda.decide(options, torch, None, cuda_toolkits.watched(options, {}, []), "gcc")


@pytest.mark.parametrize(("switch", "torch"), [(Switch.AUTO, _CUDA), (Switch.ON, _CPU)])
def test_a_cuda_home_that_is_no_toolkit_is_an_error_where_one_is_wanted(
    switch: Switch, torch: cuda.Torch, tmp_path: Path
):
    said = f"CUDA_PATH={tmp_path} is not a complete CUDA toolkit: bin/nvcc is missing"
    with pytest.raises(BuildError, match=said):
        _decide_with_cuda_home(tmp_path, switch, torch)


def test_a_cuda_home_that_is_no_toolkit_does_not_matter_beside_a_torch_for_cpus(tmp_path: Path):
    decision = _decide_with_cuda_home(tmp_path, Switch.AUTO, _CPU)
    assert decision.line == "not built (torch and jax are CPU builds)"


@pytest.mark.usefixtures("no_standard_place")
def test_a_toolkit_made_of_wheels_is_a_whole_one(tmp_path: Path):
    nvcc = write_toolkit(tmp_path / "nvidia" / "cu13", libraries="lib")
    ((found, _),) = cuda_toolkits.watched(Options(), {"PATH": ""}, [str(tmp_path)])
    assert found == nvcc
    toolkit, _ = cuda_toolkits.find([(found, "")], "gcc", 13)
    assert toolkit.home == tmp_path / "nvidia" / "cu13"


@pytest.mark.parametrize("target", [".", "targets/x86_64-linux", "targets/sbsa-linux"])
def test_a_toolkit_has_headers_and_libraries_where_its_machine_has_them(
    tmp_path: Path, target: str
):
    # The second and the third layout are those of conda-forge.
    nvcc = write_toolkit(tmp_path, target=target, libraries="lib")
    assert cuda_toolkits.find([(nvcc, "")], "gcc", 13)[0]


def test_why_a_toolkit_that_comes_first_is_not_used_is_said(tmp_path: Path):
    first = write_toolkit(tmp_path / "first")
    (tmp_path / "first" / "bin" / "ptxas").unlink()
    second = write_toolkit(tmp_path / "second")
    line = _decide(Switch.AUTO, _CUDA, first, second).line
    assert f"{tmp_path}/second, found by a test; {tmp_path}/first (a test) is not" in line
    assert "has no bin/ptxas" in line


def test_a_script_on_the_path_leads_to_the_toolkit_that_it_starts(tmp_path: Path):
    nvcc = write_toolkit(tmp_path / "cuda-13.0")
    script = program(tmp_path / "bin" / "nvcc", f'exec {nvcc} "$@"')
    toolkit, _ = cuda_toolkits.find([(script, "")], "gcc", None)
    assert toolkit.home == tmp_path / "cuda-13.0"


def test_another_nvcc_at_the_same_path_repeats_the_decision(tmp_path: Path):
    nvcc = write_toolkit(tmp_path)
    options = Options(cuda_home=str(tmp_path))
    before = cuda.depends_on(options, {})
    os.utime(nvcc, ns=(1, 1))
    assert cuda.depends_on(options, {}) != before
