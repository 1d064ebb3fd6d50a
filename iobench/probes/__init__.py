"""Throughput and latency of storage alone."""
