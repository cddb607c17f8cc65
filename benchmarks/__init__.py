"""Instances and how long they take: ``python -m benchmarks``."""
