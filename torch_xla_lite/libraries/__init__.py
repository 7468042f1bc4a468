"""Trainers of other libraries on device 'jax'."""
