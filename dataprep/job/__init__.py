"""Run a job: plan it, make its shards on Dask workers, and write its receipts and manifests.

A job can be resumed, divided into parts that run on several hosts, and estimated without running.

This module imports nothing itself, because multiprocessing's fork server imports
``dataprep.job.fork_server_preload``, which sets up the process before anything large is imported.
"""
