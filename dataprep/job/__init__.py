"""A whole job: plan, Dask, receipts, manifest; resume, parts, retries and progress.

This package imports nothing by itself, because multiprocessing's fork server imports
``dataprep.job.fork_server_preload``, which sets up the process before anything large is imported.
"""
