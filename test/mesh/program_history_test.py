"""What processes have run is compared, as far as both know it."""

from torch_xla_lite.mesh.base.program_history import History


def _history(runs: list[tuple[bytes, bytes]]) -> History:
    history = History()
    for number, (program, numbers) in enumerate(runs, start=1):
        history.add(program, numbers, f"train.py:{number}")
    return history


_RUNS = [(b"forward", b""), (b"step", b"0.1")] * 3


def test_equal_histories_and_their_beginnings_do_not_differ():
    for count in range(len(_RUNS) + 1):
        assert _history(_RUNS).difference(_history(_RUNS[:count]).text()) is None
        assert _history(_RUNS[:count]).difference(_history(_RUNS).text()) is None


def test_the_first_difference_is_named():
    for change in [(b"loss", b""), (b"forward", b"1")]:
        other = [*_RUNS[:2], change, *_RUNS[3:]]
        own, its = _history(_RUNS).difference(_history(other).text())
        assert (own.number, its.line) == (3, "train.py:3")
        assert (own.program == its.program) == (change[0] == b"forward")


def test_a_difference_before_what_is_told_is_seen():
    same = [(b"step", b"")] * 100
    own, _ = _history([(b"a", b""), *same]).difference(_history([(b"b", b""), *same]).text())
    assert own.number > 60
    assert len(_history(same * 60).text()) < 4_000
