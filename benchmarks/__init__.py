"""``make bench``: this package beside other programs, on one machine, in one run.

Contenders of a contest run one after the other, each in a process of its own, in an order that
moves on by one each round. Ratios are taken within rounds. ``sharding.py`` and ``bare_loop.py``
are scripts of their own: whole jobs beside a bare loop.
"""
