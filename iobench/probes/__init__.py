"""Probes measure the throughput and latency of storage, without loaders or training.

- ``settings``: the keys of a config, and the parameters of trials;
- ``disk`` with ``blocks`` and ``fio``: read and write blocks of a file;
- ``layout``: read samples as whole shards, as single records, or as small files;
- ``parallel``: timed operations in several processes;
- ``object_store/``: read and write objects of a store.
"""
