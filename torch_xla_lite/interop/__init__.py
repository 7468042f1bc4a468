"""Torch and jax in one program: jax functions as recorded ops, and torch functions in jax."""
