"""The communication in the text of a compiled program."""

import pytest

from torch_xla_lite.mesh.base import communication

GROUPS = {
    "replica_groups={{0,1,2,3},{4,5,6,7}}": 4,
    "replica_groups=[2,4]<=[8]": 4,
    "replica_groups=[4,2]<=[2,4]T(1,0)": 2,
    "replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_1'}": 4,
    "replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_0','axis_1'}": 8,
    "replica_groups=mesh['axis_0'=8] {'axis_0':(1)2}": 2,
}


@pytest.mark.parametrize("groups", GROUPS)
def test_a_device_sends_what_a_ring_of_its_group_needs(groups: str):
    size, part = 64, 1 - 1 / GROUPS[groups]
    of_kind = {
        "all-gather": size * part,
        "all-to-all": size * part,
        "all-reduce": 2 * size * part,
        "reduce-scatter": size * (GROUPS[groups] - 1),
    }
    for kind, sent in of_kind.items():
        line = f"  %x.1 = (f32[2,4]{{1,0}}, bf16[16]{{0}}) {kind}(%a, %b), channel_id=1, {groups}"
        assert communication.bytes_sent(line) == {kind: sent}
        assert communication.of_program(line) == {kind: (1, size)}


def test_a_permutation_sends_what_it_gives_and_parts_of_one_count_once():
    line = "%p = f32[4]{0} collective-permute(%a), source_target_pairs={{0,1},{1,0}}"
    assert communication.bytes_sent(f"{line}\n{line}") == {"collective-permute": 32}
    assert communication.bytes_sent(f'{line}, chain_id="1"\n' * 3) == {"collective-permute": 16}


# XLA for GPUs has operations that start one of the above, and give the operands, too.
STARTS = {
    "(f32[4]{0}, f32[8]{0}) all-gather-start(%a)": ("all-gather", 32),
    "((f32[4]{0}, s32[2]{0}), (f32[8]{0}, s32[4]{0})) all-gather-start(%a, %b)": ("all-gather", 48),
    "((f32[8]{0}), f32[4]{0}) reduce-scatter-start(%a)": ("reduce-scatter", 16),
    "f32[8]{0} all-reduce-start(%a)": ("all-reduce", 32),
    "(f32[8]{0}, s32[]) all-reduce-start(%a, %b)": ("all-reduce", 36),
    "(f32[8]{0}, f32[8]{0}) collective-permute-start(%a)": ("collective-permute", 32),
    "(f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%a)": ("collective-permute", 32),
}


@pytest.mark.parametrize("call", STARTS)
def test_what_starts_is_counted_by_its_results(call: str):
    kind, size = STARTS[call]
    line = f"  %x.1 = {call}, channel_id=1, replica_groups={{{{0,1}}}}"
    assert communication.of_program(line) == {kind: (1, size)}
