"""Benchmarks, run by `make bench`: what a refresh costs, and that every order of days gives the same index."""
