"""Example programs: `python -m torch_xla_lite.examples.digits`."""
