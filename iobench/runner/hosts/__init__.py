"""Several hosts that measure each trial of a run at the same time.

The hosts exchange small JSON objects in a folder or bucket that all of them can reach, the
*rendezvous*. Host 0 is the *leader*: it chooses the next trial, lets all hosts begin at the same
time, and collects their results. The other hosts are *followers*. All objects of one run together
are a *meeting*. The modules, in the order in which a run uses them:

- ``settings``: the number of this host, the number of hosts, and the address of the rendezvous;
- ``rendezvous``: write, read and wait for objects;
- ``messages``: the contents of the objects, and their keys;
- ``joining``: find the other hosts, and refuse a host with another config or version;
- ``leader`` and ``follower``: what host 0 and every other host do in a trial;
- ``joint_run``: a whole run, from joining to the end.
"""
