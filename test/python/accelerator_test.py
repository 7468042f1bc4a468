"""torch.jax and torch.accelerator: streams, events, memory."""

import pytest
import torch

import torch_xla_lite
from torch_xla_lite import debug


def test_memory_of_tensors_is_counted():
    torch_xla_lite.sync()  # What modules of other tests have recorded.
    torch.jax.empty_cache()
    before = torch.jax.memory_allocated()
    tensor = torch.ones(1 << 18, device="jax")
    assert torch.jax.memory_allocated() == before  # only recorded
    torch_xla_lite.sync()
    assert torch.jax.memory_allocated() == before + (1 << 20)
    assert torch.accelerator.memory_allocated() == before + (1 << 20)
    del tensor
    assert torch.jax.memory_allocated() == before


def test_the_peak_is_kept_until_it_is_reset():
    torch.jax.reset_peak_memory_stats()
    before = torch.jax.max_memory_allocated()
    tensor = torch.zeros(1 << 18).to("jax")
    del tensor
    assert torch.jax.max_memory_allocated() == before + (1 << 20)
    assert torch.accelerator.max_memory_allocated() == before + (1 << 20)
    torch.accelerator.reset_peak_memory_stats()
    assert torch.jax.max_memory_allocated() == torch.jax.memory_allocated() < before + (1 << 20)


def test_statistics_have_the_names_of_torch():
    stats = torch.jax.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.jax.memory_allocated()
    assert stats["allocation.all.allocated"] >= stats["allocation.all.current"]
    torch.jax.reset_accumulated_memory_stats()
    assert torch.accelerator.memory_stats()["allocation.all.allocated"] == 0


def test_properties_such_as_free_and_total_memory():
    free, total = torch.jax.mem_get_info()
    assert 0 < free <= total
    assert torch.accelerator.get_memory_info()[1] == total
    assert torch.float32 in torch.accelerator.get_device_capability()["supported_dtypes"]


@pytest.mark.parametrize("name", sorted(torch.accelerator.__all__))
def test_every_function_of_the_accelerator_module_works_or_says_no(name):
    function = getattr(torch.accelerator, name)
    arguments = {
        "device_index": (0,),
        "set_device_idx": (0,),
        "set_device_index": (0,),
        "set_stream": (torch.Stream("jax"),),
    }
    try:
        function(*arguments.get(name, ()))
    except RuntimeError as error:
        assert name == "Graph"
        assert "Graph is not supported on device type: jax" in str(error)


def test_an_event_measures_the_time_until_the_work_is_done():
    start, end = torch.jax.Event(enable_timing=True), torch.jax.Event(enable_timing=True)
    value = torch.ones(300, 300, device="jax")
    start.record()
    kept = value @ value
    debug.reset_metrics()
    end.record()
    assert debug.metrics()["executions"] == 1
    assert start.elapsed_time(end) > 0
    assert kept[0, 0].item() == 300


@pytest.mark.parametrize(
    "make", [torch.jax.Event, lambda: torch.Event("jax"), torch.jax.current_stream]
)
def test_an_event_or_a_stream_is_idle_after_its_work_has_run(make):
    waited = make()
    assert waited.query()
    kept = torch.ones(2, device="jax") + 1
    if isinstance(waited, torch.Event):
        waited.record()
    debug.reset_metrics()
    assert waited.query()
    assert debug.metrics()["executions"] == 1
    waited.synchronize()
    assert kept.tolist() == [2, 2]


def test_an_event_without_timing_has_no_time():
    first, second = torch.jax.Event(), torch.jax.Event()
    first.record()
    second.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        first.elapsed_time(second)


def test_there_is_one_stream():
    stream = torch.jax.current_stream()
    assert isinstance(stream, torch.jax.Stream)
    assert stream == torch.jax.default_stream() == torch.accelerator.current_stream()
    assert stream.device == torch.device("jax", 0)
    with torch.jax.stream(torch.jax.Stream("jax")), torch.jax.current_stream():
        assert torch.jax.current_stream() == stream
    torch.jax.set_stream(stream)
    torch.ones(1, device="jax").record_stream(stream)
    stream.wait_stream(stream)
    stream.wait_event(stream.record_event())
    stream.record_event().wait()


# --- mixed precision ------------------------------------------------------------------------------


@pytest.mark.parametrize("overflow_at", [None, 1])
def test_a_grad_scaler_works_as_on_the_cpu_without_fallback(overflow_at):
    def train(place):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 3).to(place)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler(place, init_scale=1024.0, growth_interval=2)
        scales = []
        for i in range(5):
            optimizer.zero_grad()
            factor = float("inf") if i == overflow_at else 1.0
            loss = (model(torch.ones(2, 3, device=place)) * factor).square().sum()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales, scaler.state_dict(), [p.detach().cpu() for p in model.parameters()]

    debug.reset_metrics()
    scales, state, parameters = train("jax")
    assert debug.metrics()["fallbacks"] == {}
    expected_scales, expected_state, expected_parameters = train("cpu")
    assert scales == expected_scales
    assert state == expected_state
    torch.testing.assert_close(parameters, expected_parameters)
