"""Programs that show torch_xla_lite at work: `python -m torch_xla_lite.examples.digits`."""
