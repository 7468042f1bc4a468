"""Gives the CPU eight virtual devices; to be imported before any value is computed."""

import jax

jax.config.update("jax_num_cpu_devices", 8)
