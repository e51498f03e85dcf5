"""Webs that are served on loopback, for tests, the demo and benchmarks; no part of the package."""
