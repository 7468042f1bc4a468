"""debug.metrics() counts what happened."""

import itertools
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch

import torch_xla_lite
from test.python import programs
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import graph_differences, new_graphs
from torch_xla_lite.compiler.recorded_graph import RecordedGraph


def test_reset_sets_all_to_zero():
    (torch.ones(2, device="jax") + 1).tolist()
    debug.reset_metrics()
    assert debug.metrics() == {
        "compiles": 0,
        "loads": 0,
        "executions": 0,
        "cache_hits": 0,
        "interpretations": 0,
        "planned": 0,
        "plans": 0,
        "recorded_ops": 0,
        "fallbacks": {},
        "gathered": {},
    }


def test_the_same_graph_again_is_a_cache_hit():
    def graph():
        return (torch.ones(7, device="jax").sinh() + 1).tolist()

    graph()
    debug.reset_metrics()
    graph()
    metrics = debug.metrics()
    assert (metrics["compiles"], metrics["cache_hits"], metrics["executions"]) == (0, 1, 1)


def test_metrics_are_a_snapshot():
    before = debug.metrics()
    count = before["recorded_ops"]
    torch.ones(2, device="jax").add(1)
    assert before["recorded_ops"] == count
    assert debug.metrics()["recorded_ops"] > count


def test_calls_of_aten_in_a_graph_are_counted_each_time_that_it_runs():
    x, target = torch.arange(6.0, device="jax"), torch.tensor([3, 1, -1, 0, 0, 0], device="jax")

    def step():
        loss = torch.nn.functional.multilabel_margin_loss
        return (loss(x, target) + loss(x * 2, target)).tolist()

    torch_xla_lite.sync()
    step()
    debug.reset_metrics()
    step()
    step()
    assert debug.metrics()["compiles"] == 0
    assert debug.metrics()["fallbacks"] == {"aten::multilabel_margin_loss_forward": 4}


def test_what_only_reads_metadata_is_no_fallback():
    x = torch.arange(6.0, device="jax")
    debug.reset_metrics()
    assert torch.ops.aten.is_same_size(x, x + 1)
    assert not torch.ops.aten.is_same_size(x, x[:2])
    assert x.is_set_to(x)
    assert not x.is_set_to(x.clone())
    assert torch.ops.aten._has_same_storage_numel(x, x[2:4])
    assert not torch.ops.aten._has_same_storage_numel(x, x[2:4].clone())
    assert not torch._use_cudnn_ctc_loss(x, x, [1], [1], 0)
    assert debug.metrics()["fallbacks"] == {}
    assert debug.metrics()["executions"] == 0


def causes(*programs):
    """What is said of the new graphs of some programs."""
    torch_xla_lite.sync()
    new_graphs.reset()
    for program in programs:
        program()
        torch_xla_lite.sync()
    return [graph.cause for graph in debug.explain_recompile()]


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype).to("jax")


# What is said of the second program, of two tensors, after the first one.
CAUSES = {
    "input 0 is float32[43], was float32[42]": (
        lambda x, y: ones(42).mul(2),
        lambda x, y: ones(43).mul(2),
    ),
    "input 0 is int32[44], was float32[44]": (
        lambda x, y: ones(44).neg(),
        lambda x, y: ones(44, dtype=torch.int32).neg(),
    ),
    "dim of aten::_softmax is 1, was 0": (lambda x, y: x.softmax(0), lambda x, y: x.softmax(1)),
    "dtype of aten::sum is float64, was float32": (
        lambda x, y: x.sum(dtype=torch.float32),
        lambda x, y: x.sum(dtype=torch.float64),
    ),
    "aten::tan where aten::exp was": (lambda x, y: x.sinh().exp(), lambda x, y: x.sinh().tan()),
    "it also has aten::tan": (lambda x, y: x.sinh(), lambda x, y: x.sinh().tan()),
    "it also has aten::neg": (
        lambda x, y: x.sinh().exp().sum(),
        lambda x, y: x.neg().sinh().exp().sum(),
    ),
    "it lacks aten::neg": (
        lambda x, y: x.neg().sinh().exp().sum(0),
        lambda x, y: x.sinh().exp().sum(0),
    ),
    "it also has 2 x aten::neg, aten::tan": (
        lambda x, y: x.cos().exp().sum(),
        lambda x, y: x.neg().cos().neg().exp().tan().sum(),
    ),
    "the same ops in another order, from aten::sinh on": (
        lambda x, y: x.exp().tan().cos().sinh(),
        lambda x, y: x.sinh().cos().tan().exp(),
    ),
    "aten::sub.Tensor takes the results of other ops": (
        lambda x, y: (z := [x.sinh(), y.sinh()]) and torch.sub(*z).cpu(),
        lambda x, y: (z := [x.sinh(), y.sinh()]) and torch.sub(*z[::-1]).cpu(),
    ),
    "aten::tan where aten::exp was; input 0 is float32[160], was float32[159]": (
        lambda x, y: ones(159).sinh().exp(),
        lambda x, y: ones(160).sinh().tan(),
    ),
    # The input of an op that is new is no other input.
    "it also has aten::sum, an input, aten::add.Tensor": (
        lambda x, y: x.sinh(),
        lambda x, y: ones(3).sum() + x.sinh(),
    ),
    # Shapes that follow from others are not named.
    "size of aten::ones is [154], was [153]": (
        lambda x, y: torch.ones(153, device="jax").cosh().sum() * 2,
        lambda x, y: torch.ones(154, device="jax").cosh().sum() * 2,
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_what_is_new_in_a_graph_is_named(cause: str):
    x, y = (ones(2, 60 + [*CAUSES].index(cause)) for _ in range(2))
    programs = [lambda program=program: program(x, y).cpu() for program in CAUSES[cause]]
    assert causes(*programs) == ["the first graph", cause]


def test_a_graph_with_many_other_ops_is_described_in_short():
    x, y, z = (torch.ones(2, 50).to("jax") for _ in range(3))
    long = lambda: (x.exp() + y.exp() * z.exp()).cos().tan().sinh().tolist()  # noqa: E731
    found = causes(lambda: (x / 3).tolist(), long)[1]
    more, fewer = found.split("; ")
    assert more == "it also has 3 x aten::exp, 2 inputs, aten::mul.Tensor and 4 more"
    assert fewer == "it lacks aten::div.Tensor"


@pytest.mark.nightly
def test_the_line_of_an_op_that_differs_is_named(tmp_path):
    script = tmp_path / "program.py"
    program = """
import torch, torch_xla_lite
x = torch.ones(2).to("jax")
x.sinh().tolist()
y = x.tan()
y.sinh().tolist()
x.sinh().tolist()
print(*torch_xla_lite.debug.explain_recompile(), sep="\\n")
"""
    done = programs.run_file(script, program, TORCH_XLA_LITE_IR_DEBUG="1")
    assert done.stdout.splitlines() == [
        f"{script}:4 in <module>: the first graph",
        f"{script}:6 in <module>: it also has aten::tan (recorded at {script}:5 in <module>)",
    ]


def test_another_default_dtype_is_named():
    def compute(dtype):
        torch.set_default_dtype(dtype)
        (torch.arange(162).to("jax") / 3).sum().item()
        torch.set_default_dtype(torch.float32)

    found = causes(lambda: compute(torch.float32), lambda: compute(torch.float64))
    assert found[1] == "torch's default dtype is float64, was float32"


def test_a_graph_whose_program_was_dropped_has_no_difference():
    x = torch.ones(163).to("jax")

    def compute():
        _XLAC.clear_cache()
        (x * 3).tolist()

    assert causes(compute, compute)[1] == "none: its program was dropped from memory"


def test_a_graph_of_3000_ops_is_explained():
    def steps(first):
        words = [0] * 8
        leaf = (6, (4,), False, 0)
        calls = [("aten::neg", words, [(i, 0)], [(6, (4,))], 0, "", None) for i in range(3000)]
        return RecordedGraph.of([leaf, *first, *calls], [(3000, 0, None)])

    tan = ("aten::tan", [0] * 8, [(0, 0)], [(6, (4,))], 0, "", None)
    graphs = [steps([]) for _ in range(10)]
    assert graph_differences.cause(steps([tan]), graphs) == "it also has aten::tan"


def test_other_needed_values_are_named():
    x = torch.ones(49).to("jax")
    kept = []

    def keep(count):
        values = [x.sinh()]
        values.append(values[0].tan())
        kept.append(values[-count:])

    assert causes(lambda: keep(1), lambda: keep(2))[1].startswith("2 values are needed, was 1")


def test_donation_is_reported():
    state = torch.ones(50).to("jax")
    kept = state

    def update():
        nonlocal state
        state = state * 3

    assert causes(update, update)[1] == "input 0 float32[50] may be overwritten (donation)"
    assert kept.tolist() == [1] * 50


def test_the_last_of_the_most_similar_graphs_is_compared():
    def run(size, function):
        return lambda: function(torch.ones(size).to("jax")).tolist()

    found = causes(*(run(51 + i, torch.tan if i == 1 else torch.exp) for i in range(4)))
    assert found[2] == "input 0 is float32[53], was float32[51]"
    assert found[3] == "input 0 is float32[54], was float32[53]"


def test_the_users_line_is_named():
    torch.ones(54, device="jax").cosh().tolist()
    line = debug.explain_recompile()[-1].line
    assert line.startswith(f"{__file__}:")
    assert line.endswith(" in test_the_users_line_is_named")


def test_the_tenth_new_graph_of_a_line_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in range(60, 75):
            torch.ones(size).to("jax").sum().item()
    found = [one for one in caught if one.category is new_graphs.RecompilationWarning]
    assert len(found) == 1
    text = str(found[0].message)
    assert "compiled its tenth graph here: input 0 is float32[69], was float32[6" in text
    assert found[0].filename == __file__
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[found[0].lineno - 1]
    assert line.strip() == 'torch.ones(size).to("jax").sum().item()'


def test_old_graphs_are_forgotten(monkeypatch):
    monkeypatch.setattr(new_graphs, "_MOST_OPS", 10)
    for size in range(80, 90):
        torch.ones(size, device="jax").cosh().tolist()
    assert len(debug.explain_recompile()) <= 5


def test_the_report_counts_executions():
    def run():
        torch.ones(91, device="jax").cosh().tolist()  # the line

    for _ in range(3):
        run()
    rows = debug.report().splitlines()
    (total,) = [row for row in rows if " executions, " in row]
    cells = [row.split() for row in rows if row.endswith("in run") and "debug_test.py:" in row]
    assert {row[4]: row[1] for row in cells} == {"compiling": "1", "compiled": "3"}
    assert total.endswith(" s")


def test_notebooks_and_interpreters_show_tables():
    x = torch.ones(93, device="jax") * 2
    graph = debug.graph()
    assert repr(graph) == str(graph) and "aten::mul" in repr(graph)
    x.tolist()
    for shown in (debug.report(), debug.explain_recompile()):
        assert "debug_test.py:" in repr(shown)
        assert shown._repr_html_().startswith("<table>")
        assert "<td>" in shown._repr_html_()
    assert all(len(line) <= 80 for line in repr(debug.explain_recompile()).splitlines())


WITH_LINES = """
import torch, torch_xla_lite
x = torch.ones(2).to("jax")
y = (x * 3).relu()
print(torch_xla_lite.debug.graph())
"""


def test_the_pending_graph_is_shown_with_lines(tmp_path):
    script = tmp_path / "program.py"
    done = programs.run_file(script, WITH_LINES, TORCH_XLA_LITE_IR_DEBUG="1")
    assert done.stdout.splitlines() == [
        "%0 = input float32[2]",
        f"%1 = aten::mul.Tensor(%0) -> float32[2]      # {script}:4 in <module>",
        f"%2 = aten::relu(%1) -> float32[2]      # {script}:4 in <module>",
        "needed: %2",
    ]


def test_to_look_at_the_pending_graph_runs_nothing():
    kept = torch.ones(2, device="jax") + 1
    debug.reset_metrics()
    assert "aten::add" in str(debug.graph())
    assert debug.metrics()["executions"] == 0
    assert kept.tolist() == [2, 2]
    assert str(debug.graph()) == "needed: nothing"


SVG = "{http://www.w3.org/2000/svg}"


def picture(tmp_path) -> ET.Element:
    debug.graph().save(tmp_path / "graph.svg")
    return ET.parse(tmp_path / "graph.svg").getroot()


def corners(root: ET.Element) -> list[tuple[int, int]]:
    """Of the boxes, in the order of the steps."""
    return [(int(box.get("x")), int(box.get("y"))) for box in root.iter(f"{SVG}rect")]


def deep(length):
    x = torch.ones(2).to("jax")
    return list(itertools.accumulate(range(length), lambda y, _: y.tan(), initial=x))


def wide(length):
    return torch.stack([torch.ones(2).to("jax") for _ in range(length)])


def sum_of(length):
    return sum(torch.ones(2).to("jax") for _ in range(length // 2))


@pytest.mark.parametrize(
    ("graph", "length", "drawn"),
    [
        (deep, 0, 0),
        (deep, 3, 4),
        (deep, 1900, 1901),
        (wide, 1000, 1001),
        (wide, 4000, 3000),
        (sum_of, 1000, 1000),
    ],
)
def test_the_picture_is_a_file_of_its_own_and_at_most_1850_pixels_wide(
    tmp_path, graph, length, drawn
):
    torch_xla_lite.sync()
    values = graph(length)
    root = picture(tmp_path)
    boxes = corners(root)
    assert len(boxes) == drawn
    # Boxes of 190 x 38 pixels at the places of a grid do not overlap.
    assert len(set(boxes)) == len(boxes)
    assert all((x - 14) % 204 == 0 and (y - 34) % 72 == 0 for x, y in boxes)
    width, height = int(root.get("width")), int(root.get("height"))
    assert all(x + 190 <= width and y + 38 <= height for x, y in boxes)
    assert width <= 1850
    assert height <= 25_000
    assert not any("href" in key for element in root.iter() for key in element.attrib)
    del values


def test_a_wide_row_leaves_room_for_columns(tmp_path):
    torch_xla_lite.sync()
    values = deep(400), wide(9)
    # 400 rows in one column are 28,800 pixels high.
    assert int(picture(tmp_path).get("height")) < 6_000
    del values


def test_an_input_is_above_the_first_op_that_takes_it(tmp_path):
    torch_xla_lite.sync()
    x, late = torch.ones(2).to("jax"), torch.ones(2).to("jax")
    value = x.tan().tan().tan() + late
    rows = [y for _, y in corners(picture(tmp_path))]
    assert str(debug.graph()).splitlines()[4:6] == [
        "%4 = input float32[2]",
        "%5 = aten::add.Tensor(%3, %4) -> float32[2]",
    ]
    assert rows == [34, 106, 178, 250, 250, 322]
    assert value.tolist() != [0, 0]


def test_a_box_has_its_line_of_the_graph(tmp_path):
    torch_xla_lite.sync()
    value = torch.ones(2).to("jax").tan()
    titles = [title.text for title in picture(tmp_path).iter(f"{SVG}title")]
    assert titles == ["%0 = input float32[2], donated", "%1 = aten::tan(%0) -> float32[2]"]
    del value
