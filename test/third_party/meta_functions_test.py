"""third_party/torch/meta_functions.py finds the overload of each meta function by its types."""

from pathlib import Path

import pytest

from third_party.torch import meta_functions

ADD = "at::Tensor (const at::Tensor &, const at::Tensor &, const at::Scalar &)"
NORM = "at::Tensor (const at::Tensor &, c10::SymIntArrayRef, ::std::array<bool,3>)"


@pytest.fixture
def include(tmp_path: Path) -> Path:
    (tmp_path / "ATen" / "ops").mkdir(parents=True)
    return tmp_path


def declare(include: Path, op: str, declarations: list[str], overloads: dict[str, str]) -> None:
    """Writes the two headers of an op as torch's generator does."""
    folder = include / "ATen" / "ops"
    (folder / f"{op}_meta_dispatch.h").write_text(
        "".join(f"TORCH_API {declaration};\n" for declaration in declarations)
    )
    (folder / f"{op}_ops.h").write_text(
        "".join(
            f"struct TORCH_API {op}_{overload} {{\n"
            f"  using schema = {kind};\n"
            f'  static constexpr const char* name = "aten::{op}";\n'
            f'  static constexpr const char* overload_name = "{overload}";\n}};\n'
            for overload, kind in overloads.items()
        )
    )


def test_a_function_belongs_to_the_overload_with_its_types(include):
    declare(
        include,
        "add",
        [
            "at::Tensor add(const at::Tensor & self, const at::Tensor & other, "
            "const at::Scalar & alpha=1)",
            "at::Tensor & add_(at::Tensor & self, const at::Tensor & other)",
        ],
        {
            "Scalar": "at::Tensor (const at::Tensor &, const at::Scalar &)",
            "Tensor": ADD,
            "in_place": "at::Tensor & (at::Tensor &, const at::Tensor &)",
        },
    )
    assert list(meta_functions.functions(include)) == [("aten::add.Tensor", "add", ADD)]


def test_types_with_commas_and_symbolic_sizes(include):
    parameters = "const at::Tensor & self, {} sizes, ::std::array<bool,3> mask"
    declare(
        include,
        "norm",
        [
            f"at::Tensor norm({parameters.format('at::IntArrayRef')})",
            f"at::Tensor norm_symint({parameters.format('c10::SymIntArrayRef')})",
        ],
        {"": NORM},
    )
    assert list(meta_functions.functions(include)) == [("aten::norm", "norm_symint", NORM)]


def test_the_header_calls_a_macro_for_each_function_in_order(include):
    for op in ("b", "a"):
        declare(include, op, [f"void {op}()"], {"": "void ()", "x": "int ()"})
    meta_functions.main(include, include / "header.h")
    assert (include / "header.h").read_text().splitlines()[2:] == [
        "#include <ATen/ops/a_meta_dispatch.h>",
        "#include <ATen/ops/b_meta_dispatch.h>",
        "",
        "#define TORCH_META_FUNCTIONS(X) \\",
        '  X("aten::a", a, void ()) \\',
        '  X("aten::b", b, void ()) \\',
        "",
    ]
