"""Several hosts that measure each trial of a run at the same time.

The hosts exchange small JSON objects in a folder or bucket that all of them can reach, the
*rendezvous*. Host 0 is the *leader*: it chooses the next trial, lets all hosts begin at the same
time, and collects their results. The other hosts are *followers*. Each start of host 0 begins a
new *meeting*: the objects of a meeting have a common prefix. One trial of a meeting is a *turn*.
The modules, in the order in which a run uses them:

- ``settings``: the number of this host, the number of hosts, and the address of the rendezvous;
- ``rendezvous``: write, read and wait for objects;
- ``messages``: the contents and the keys of the objects, with the order in which they are sent;
- ``joining``: find the other hosts, and refuse a host that has another config, version or number
  of hosts;
- ``leader`` and ``follower``: what host 0 and every other host do in a trial;
- ``joint_run``: a whole run, from joining to the end.
"""
