"""Tensors and modules that are spread over many devices."""
