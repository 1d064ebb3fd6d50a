"""``make bench``: compare this package with other programs, on one machine, in one run.

A contest compares several contenders that do the same work. In each round, the contenders run one
after the other, each in a process of its own. Each round begins with another contender. Ratios are
taken within rounds. ``sharding.py`` and ``bare_loop.py`` are separate scripts, which compare whole
jobs with a bare loop.
"""
