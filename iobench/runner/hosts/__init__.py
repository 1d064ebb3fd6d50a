"""Several hosts that measure each trial of a run at the same time.

The hosts exchange small JSON objects in a folder or a bucket that all of them reach, the
*rendezvous*. Host 0 leads: it decides which trial is next, lets all hosts begin together, and
collects their results. The modules, in the order in which a run uses them:

- ``settings``: the number of this host, the number of hosts, and where they meet;
- ``rendezvous``: write, read and wait for objects;
- ``messages``: the contents of the objects, and their keys;
- ``joining``: find the other hosts, and refuse a host with another config or version;
- ``leader`` and ``follower``: the side of host 0 and the side of every other host in a trial;
- ``joint_run``: a whole run, from joining to the end.
"""
