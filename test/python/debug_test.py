"""debug.metrics() counts what happened."""

import torch

import torch_xla_lite
from torch_xla_lite import debug


def test_metrics_have_these_names():
    assert set(debug.metrics()) == {
        "compiles",
        "loads",
        "executions",
        "cache_hits",
        "recorded_ops",
        "fallbacks",
    }


def test_reset_sets_all_to_zero():
    (torch.ones(2, device="jax") + 1).tolist()
    debug.reset_metrics()
    assert debug.metrics() == {
        "compiles": 0,
        "loads": 0,
        "executions": 0,
        "cache_hits": 0,
        "recorded_ops": 0,
        "fallbacks": {},
    }


def test_recording_runs_nothing():
    debug.reset_metrics()
    kept = torch.ones(2, device="jax") + 1
    metrics = debug.metrics()
    assert metrics["recorded_ops"] >= 1
    assert metrics["executions"] == 0
    del kept


def test_deleted_tensors_are_not_computed():
    torch_xla_lite.sync()
    debug.reset_metrics()
    torch.ones(2, device="jax") + 1
    torch_xla_lite.sync()
    assert debug.metrics()["executions"] == 0


def test_a_sync_runs_all_that_is_recorded_as_one_graph():
    torch_xla_lite.sync()
    first, second = torch.ones(2, device="jax") + 1, torch.ones(3, device="jax") * 2
    debug.reset_metrics()
    torch_xla_lite.sync()
    assert debug.metrics()["executions"] == 1
    assert (first.tolist(), second.tolist()) == ([2, 2], [2, 2, 2])
    assert debug.metrics()["executions"] == 1


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
    assert not torch._use_cudnn_ctc_loss(x, x, [1], [1], 0)
    assert debug.metrics()["fallbacks"] == {}
    assert debug.metrics()["executions"] == 0
