"""Crawls and watches of webs without a network: a research instrument beside the package (docs/simulator.md)."""
