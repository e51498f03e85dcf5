"""Simulated webs on loopback, for tests, the demo and benchmarks; not part of the package."""
