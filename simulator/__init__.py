"""Simulations that only research needs, beside the package."""
