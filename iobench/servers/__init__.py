"""Servers for tests and for the self-test: S3 in memory, moto, and a proxy that injects faults."""
