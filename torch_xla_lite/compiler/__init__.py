"""Compiles recorded graphs: what the executor of the bridge calls (compiler.py)."""
