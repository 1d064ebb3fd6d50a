"""Probes measure the throughput and latency of storage, without loaders or training."""
