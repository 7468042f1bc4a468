"""Of the tests in this folder, `few_daily` (bazel/pytest_plugin.py) leaves a few cases each day."""

import pytest


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("number", range(6))
def test_cases_far_apart_run_daily_and_the_others_at_night(
    number: int, request: pytest.FixtureRequest
):
    is_nightly = request.node.get_closest_marker("nightly") is not None
    assert is_nightly == (number not in (0, 3))
