"""scripts/bench/steps.py: what it makes of the runs of several forms."""

from scripts.bench import steps


def test_a_ratio_is_that_of_the_medians_to_the_faster_of_the_others():
    runs = {
        "ours": [{"training": 0.02}, {"training": 0.09}, {"training": 0.03}],
        "eager": [{"training": 0.05}],
        "inductor": [{"training": 0.06}],
        "jax": [{}],
    }
    row = steps.row("training", "one", runs)
    assert row.values == {"ours": 30, "eager": 50, "inductor": 60}
    assert row.ratio == 0.6


def test_a_form_that_took_too_long_has_no_figure_and_no_ratio():
    row = steps.row("first", "default", {"ours": [], "eager": [{"first": 1.0}]})
    assert (row.values, row.ratio, row.goal) == ({"eager": 1.0}, None, None)
