"""The GPU kit: one folder that measures a machine with a GPU and without network in eight minutes.

``build`` makes the folder where there is a network (``make gpu-kit``). On the machine ``run.sh``
installs the packages, ``prepare`` makes shards and configs, and each part of the measurement is a
program of its own. ``line`` sums a part up in one line.
"""
