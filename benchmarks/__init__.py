"""Benchmarks: one question per file; ``python -m benchmarks [name] [--json]`` runs them and prints a table."""
