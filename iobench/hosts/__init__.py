"""Several hosts that measure each trial of a run at the same time.

The hosts exchange small JSON objects in a folder or a bucket that all of them reach, the
*rendezvous*. Host 0 leads: it decides which trial is next, lets all hosts begin together, and
collects their results. The modules, in the order in which a run uses them:

- ``settings``: which host this is, of how many, and where they meet;
- ``rendezvous``: put, get and await objects;
- ``messages``: what the objects contain;
- ``joining``: find the other hosts, and refuse those with another config or version;
- ``first_host`` and ``other_host``: the two sides of a trial;
- ``meeting``: a whole run, from joining to the end.
"""
