"""What lowerings share: the registry, dtypes, platforms, meshes, and calls outside XLA."""
