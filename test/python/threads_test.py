"""Several threads record and run at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import torch_xla_lite


def in_threads(work, count=4):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_each_thread_computes_its_own_values():
    def work(index):
        x = torch.full((4,), float(index), device="jax")
        for _ in range(50):
            x = x * 2 - x + 1
        return x.tolist()

    assert in_threads(work) == [[index + 50.0] * 4 for index in range(4)]


def test_one_thread_runs_while_others_record():
    def work(index):
        if index == 0:
            for _ in range(30):
                torch_xla_lite.sync()
            return 0.0
        x = torch.zeros(4, device="jax")
        for step in range(100):
            x[step % 4] += 1
        return x.sum().item()

    assert in_threads(work) == [0.0, 100.0, 100.0, 100.0]


@pytest.mark.nightly
def test_threads_train_models_of_their_own():
    def work(index):
        model = torch.nn.Linear(4, 1)
        with torch.no_grad():
            model.weight.fill_(0.5)
            model.bias.zero_()
        model.to("jax")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = model(torch.ones(2, 4, device="jax")).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    results = in_threads(work)
    assert results[0][-1] < results[0][0]
    assert all(result == results[0] for result in results)


def test_a_value_recorded_in_one_thread_is_read_in_others():
    recorded = torch.arange(4.0, device="jax") * 3
    assert in_threads(lambda index: recorded.tolist()) == [[0, 3, 6, 9]] * 4


def test_threads_write_to_rows_of_one_tensor():
    base = torch.zeros(4, 3, device="jax")
    rows = base.unbind(0)

    def work(index):
        for _ in range(25):
            rows[index].add_(index)

    in_threads(work)
    assert base.tolist() == [[25.0 * index] * 3 for index in range(4)]
