"""The GPU kit: a folder that measures a machine with a GPU and without a network in eight minutes.

``build`` makes the folder on a machine with a network (``make gpu-kit``). On the machine with the
GPU, ``run.sh`` installs the packages, and ``prepare`` makes shards and configs. Then each part of
the measurement is a program of its own. ``line`` prints a summary of a part in one line.
"""
