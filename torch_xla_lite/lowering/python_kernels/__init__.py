"""Kernels in Python that torch calls while a program records."""
