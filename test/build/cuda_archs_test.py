"""TORCH_CUDA_ARCH_LIST, as in PyTorch."""

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import cuda_archs

# What nvcc 13.0 says.
_NUMBERS = (75, 80, 86, 87, 88, 89, 90, 100, 110, 103, 120, 121)
_LISTED = [f"sm_{number}" for number in _NUMBERS]


def _codes(text: str | None) -> list[str]:
    def accepts(code: str) -> bool:
        return code in ("sm_90a", "sm_100f")

    return list(cuda_archs.codes(text, _LISTED, accepts))


@pytest.mark.parametrize(
    "text", ["8.0;9.0+PTX", "8.0 9.0+PTX", " 9.0+PTX; 8.0;", "9.0;8.0;9.0+PTX"]
)
def test_numbers_stand_between_semicolons_or_spaces(text: str):
    assert _codes(text) == ["sm_80", "sm_90", "compute_90"]


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("Turing", ["sm_75", "compute_75"]),
        ("Ampere", ["sm_80", "sm_86", "compute_86"]),
        ("Ampere+Tegra", ["sm_87"]),
        ("Hopper", ["sm_90", "compute_90"]),
        ("Ada;Hopper", ["sm_89", "sm_90", "compute_89", "compute_90"]),
        ("Blackwell", ["sm_100", "sm_103", "sm_120", "sm_121", "compute_121"]),
    ],
)
def test_a_name_stands_for_what_it_stands_for_in_pytorch(name: str, codes: list[str]):
    assert _codes(name) == codes


def test_all_is_all_that_nvcc_lists_and_ptx_of_the_last():
    machine = [code for code in _codes("All") if code.startswith("sm_")]
    assert sorted(machine) == sorted(_LISTED)
    assert _codes("All")[-1] == "compute_121"


def test_without_a_list_it_is_the_common_ones():
    common = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]
    assert _codes(None) == _codes("Common") == common


def test_the_common_ones_are_those_that_an_older_nvcc_knows():
    older = [code for code in _LISTED if len(code) == len("sm_90")]
    assert cuda_archs.codes(None, older, lambda code: False)[-1] == "compute_90"


def test_nvcc_decides_about_features_of_one_architecture():
    assert _codes("9.0a;10.0f+PTX") == ["sm_90a", "sm_100f", "compute_100f"]
    with pytest.raises(BuildError, match=r"8\.0a"):
        _codes("8.0a")


@pytest.mark.parametrize("entry", ["Hoper", "8", "8.0+SASS", "sm_80", "8.0,9.0", "+PTX"])
def test_what_is_no_architecture_is_named_and_an_example_given(entry: str):
    with pytest.raises(BuildError) as error:
        _codes(f"9.0;{entry}")
    assert repr(entry) in str(error.value)
    assert "export TORCH_CUDA_ARCH_LIST=" in str(error.value)


@pytest.mark.parametrize("entry", ["3.5", "13.0", "Volta"])
def test_what_nvcc_does_not_know_is_named_beside_what_it_knows(entry: str):
    with pytest.raises(BuildError, match=r"cannot compile for .*7\.5 8\.0"):
        _codes(entry)
