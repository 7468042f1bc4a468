"""Random numbers on jax: reproducible, independent of the CPU's, rightly distributed."""

import jax
import pytest
import torch

import torch_xla_lite


def draw(count=8, **options):
    return torch.rand(count, device="jax", **options).tolist()


def test_a_seed_repeats_the_numbers():
    torch.manual_seed(5)
    first = draw(), draw()
    torch.manual_seed(5)
    assert (draw(), draw()) == first


def test_another_seed_gives_other_numbers():
    torch.manual_seed(5)
    first = draw()
    torch.manual_seed(6)
    assert draw() != first


@pytest.mark.nightly
@pytest.mark.parametrize("generator", ["rbg", "threefry2x32"])
@pytest.mark.parametrize("is_partitionable", [True, False])
def test_what_draws_nothing_is_interpreted_whatever_generator_jax_has(generator, is_partitionable):
    with jax.default_prng_impl(generator), jax.threefry_partitionable(is_partitionable):
        done = {}
        for mode in ("repeated", "first"):
            torch_xla_lite._XLAC.clear_cache()  # Its programs draw with the generator of before.
            torch_xla_lite._XLAC.set_compile_when(mode)
            torch_xla_lite.debug.reset_metrics()
            torch.manual_seed(3)
            assert (torch.ones(4, device="jax")[:3] * 2).tolist() == [2, 2, 2]
            counts = torch_xla_lite.debug.metrics()
            assert counts["interpretations"] == (mode == "repeated")
            noise, places = torch.randn(5, device="jax"), torch.randperm(6, device="jax")
            mask = torch.nn.functional.dropout(torch.ones(9, device="jax"))
            done[mode] = [draw(7), *(x.tolist() for x in (noise, places, mask))]
    torch_xla_lite._XLAC.clear_cache()
    assert done["repeated"] == done["first"]


def test_two_draws_in_one_graph_are_two():
    first, second = torch.rand(8, device="jax"), torch.rand(8, device="jax")
    assert first.tolist() != second.tolist()


def test_a_drawn_tensor_does_not_change_when_it_is_used_again():
    drawn = torch.rand(8, device="jax")
    total = drawn.sum().item()
    assert sum(drawn.tolist()) == pytest.approx(total, rel=1e-5)


def test_a_negative_seed_counts_from_the_end():
    torch.jax.manual_seed(-1)
    assert torch.jax.initial_seed() == 2**64 - 1


def test_seed_takes_one_from_the_system():
    assert torch.jax.seed() == torch.jax.initial_seed()


def test_drawing_on_the_device_leaves_the_cpu_generator_alone():
    state = torch.get_rng_state()
    draw()
    assert torch.equal(torch.get_rng_state(), state)


def test_a_generator_repeats_the_numbers():
    first = draw(generator=torch.Generator("jax").manual_seed(3))
    assert draw(generator=torch.Generator("jax").manual_seed(3)) == first


def test_a_generator_is_apart_from_the_default_one():
    torch.manual_seed(0)
    expected = draw()
    torch.manual_seed(0)
    draw(generator=torch.Generator("jax").manual_seed(3))
    assert draw() == expected


def test_a_generator_of_the_cpu_is_an_error():
    with pytest.raises(RuntimeError, match="generator"):
        draw(generator=torch.Generator())


def test_the_state_can_be_saved_and_restored():
    draw()
    state = torch.jax.get_rng_state()
    first = draw()
    torch.jax.set_rng_state(state)
    assert draw() == first


def test_the_state_is_a_cpu_byte_tensor():
    state = torch.jax.get_rng_state()
    assert (state.device.type, state.dtype, state.shape) == ("cpu", torch.uint8, (16,))


def test_a_state_of_another_size_is_an_error():
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.jax.set_rng_state(torch.zeros(4, dtype=torch.uint8))


def test_a_big_seed_survives_the_state():
    torch.jax.manual_seed(2**63 + 5)
    torch.jax.set_rng_state(torch.jax.get_rng_state())
    assert torch.jax.initial_seed() == 2**63 + 5


def test_fork_rng_restores_the_state():
    torch.manual_seed(1)
    with torch.random.fork_rng():
        first = draw()
    assert draw() == first


def test_multinomial_draws_each_category_once():
    weights = torch.tensor([[1.0, 1.0, 0.0, 1.0]], device="jax")
    assert sorted(torch.multinomial(weights, 3)[0].tolist()) == [0, 1, 3]


@pytest.mark.few_daily(1)
@pytest.mark.parametrize(("rows", "count"), [(1, 20000), (20000, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_multinomial_draws_by_weight(dtype, rows, count):
    torch.manual_seed(0)
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0], device="jax", dtype=dtype).expand(rows, 4)
    drawn = torch.multinomial(weights, count, replacement=True)
    assert set(drawn.flatten().tolist()) == {1, 2}
    assert drawn.double().mean().item() == pytest.approx(1.75, abs=0.02)


def test_multinomial_fills_a_tensor():
    out = torch.empty(0, dtype=torch.int64, device="jax")
    torch.multinomial(torch.ones(5, device="jax"), 5, out=out)
    assert sorted(out.tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dirichlet_gives_shares(dtype):
    torch.manual_seed(0)
    drawn = torch._sample_dirichlet(
        torch.tensor([1.0, 3.0], device="jax", dtype=dtype).expand(9000, 2)
    )
    assert drawn.dtype == dtype and drawn.min().item() > 0
    assert drawn.float().mean(0).tolist() == pytest.approx([0.25, 0.75], abs=0.01)


def test_no_number_is_beyond_what_its_bits_can_tell():
    torch.manual_seed(0)
    assert torch.empty(1 << 25, device="jax").exponential_().max().item() < 17  # 24 log(2)


def test_in_place_drawing_goes_through_views():
    base = torch.zeros(2, 3, device="jax")
    base[1].uniform_(1, 2)
    assert base[0].tolist() == [0, 0, 0]
    assert all(1 <= value < 2 for value in base[1].tolist())


def test_dropout_passes_gradients_where_it_passes_values():
    x = torch.ones(100, device="jax", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.5)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("draw", [torch._standard_gamma, torch._sample_dirichlet])
def test_samples_of_small_concentrations_are_not_zero(draw, dtype):
    """So that they have a logarithm. Most would be too small for the dtype."""
    samples = draw(torch.full((100, 3), 0.002, dtype=dtype, device="jax"))
    assert samples.dtype == dtype
    assert samples.min().item() == torch.finfo(dtype).tiny


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("size", [0, 3, 5])
def test_an_out_of_any_size_draws_once(size):
    chance = torch.full((3,), 0.5, device="jax")
    for draw_into in (torch.bernoulli, lambda p, out=None: torch.normal(p, p, out=out)):
        torch.manual_seed(0)
        expected = [draw_into(chance).tolist() for _ in range(2)]
        torch.manual_seed(0)
        out = torch.empty(size, device="jax")
        assert [draw_into(chance, out=out.resize_(size)).tolist() for _ in range(2)] == expected
