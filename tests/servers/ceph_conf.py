"""PURE. The configuration of a Ceph cluster of one monitor, one store in memory and one gateway.

Options: Ceph's documentation of 16.2 ("Configuring Ceph", "Ceph Object Gateway Config Reference").
"""

from __future__ import annotations

from pathlib import Path

FSID = "5e0b3a1c-7d51-4c0a-9a52-0c1f6f1f7a01"
OSD = "5e0b3a1c-7d51-4c0a-9a52-0c1f6f1f7a02"
CAPACITY_BYTES = 2**30
"""Of the store. One that is full blocks every request instead of refusing it."""

_CONF = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port}]
mon initial members = a
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
# The gateway's own default, "secure", needs keys.
ms mon client mode = crc
run dir = {folder}
crash dir = {folder}
admin socket =
pid file =
log file = {folder}/$name.log
log to stderr = false
mon cluster log to file = false
# One copy on one store, and as little work for it as can be.
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 10000
[mon]
mon data = {folder}/mon
mon data avail warn = 0
mon data avail crit = 0
mon warn on pool no redundancy = false
auth allow insecure global id reclaim = false
paxos propose interval = 0.05
paxos min wait = 0.01
[osd]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = {capacity}
osd class load list = *
osd class default list = *
[client]
# Without it each small request waits 40 ms for a delayed acknowledgement.
rgw frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw enable usage log = false
rgw dynamic resharding = false
rgw run sync thread = false
rgw thread pool size = 64
# What was deleted is freed at once, not after two hours.
rgw gc obj min wait = 1
rgw gc processor period = 5
rgw gc processor max time = 5
"""


def ceph_conf(folder: Path, mon_port: int, port: int, capacity: int = CAPACITY_BYTES) -> str:
    """ceph.conf: everything below ``folder``, the gateway on ``port`` of 127.0.0.1."""
    return _CONF.format(folder=folder, fsid=FSID, mon_port=mon_port, port=port, capacity=capacity)
