"""docs/lowering_costs.md: each lowering of an op that PyTorch can decompose has its costs there."""

import re

import torch

from scripts import lowering_costs


def test_the_document_has_each_op_once():
    text = lowering_costs.DOCUMENT.read_text(encoding="utf-8")
    found = re.findall(r"`(aten::[\w.]+)`", text)
    assert sorted(found) == lowering_costs.ops(), "run scripts/lowering_costs.py"


def test_each_lowering_has_a_reason():
    rows = lowering_costs.DOCUMENT.read_text(encoding="utf-8").splitlines()
    assert not [row for row in rows if row.startswith("| `aten::") and row.endswith("** |")]


def test_a_row_compares_both_programs():
    call = lowering_costs.Call(torch.ops.aten.elu.default, (torch.ones(3),), {})
    cells = lowering_costs.row("aten::elu", call).strip("| ").split(" | ")
    assert cells[:2] == ["`aten::elu`", "activation"]
    assert float(cells[2]) > 0
    assert float(cells[3]) > 0
    assert 0 < int(cells[4]) <= int(cells[5])


def test_an_op_that_is_made_of_itself_has_no_row():
    call = lowering_costs.Call(torch.ops.aten.sin.default, (torch.ones(3),), {})
    assert lowering_costs.row("aten::sin", call) is None
