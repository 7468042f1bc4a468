"""What runs before the compiled bridge is loaded: no file needs torch or jax."""
