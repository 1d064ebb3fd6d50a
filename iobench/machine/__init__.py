"""The machine: hardware, the storage behind a path, the page cache, and what samplers read."""
