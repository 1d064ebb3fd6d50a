"""Mount options: those that bear on figures, and none that names anybody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.targets.options import kept


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("rw,noatime,rw,discard", "rw,noatime,discard"),
        (
            "rw,relatime,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,noresvport,proto=tcp,"
            "port=20376,timeo=600,retrans=2,sec=sys,clientaddr=172.31.92.143,local_lock=none,"
            "addr=172.31.84.29,nconnect=16",
            "rw,relatime,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,noresvport,proto=tcp,"
            "timeo=600,retrans=2,sec=sys,local_lock=none,nconnect=16",
        ),
        ("rw,cfgFile=/etc/beegfs/jane.conf,_netdev", "rw"),
        ("rw,username=jane,domain=ACME,uid=1000,password=x,cache=strict", "rw,cache=strict"),
        (
            "rw,lowerdir=/home/jane/l,upperdir=/home/jane/u,workdir=/w,xino=off,volatile",
            "rw,xino=off,volatile",
        ),
        ("ro,user_id=1000,group_id=1000,default_permissions", "ro,default_permissions"),
        ("rw,name=jane,secret=<hidden>,mds_namespace=acme,fsid=1-2", "rw"),
        (
            "rw,subvol=/home/jane,compress=zstd:3,space_cache=v2",
            "rw,compress=zstd:3,space_cache=v2",
        ),
        ("", ""),
    ],
)
def test_what_is_kept(options: str, left: str) -> None:
    """Of real lines of mount tables."""
    assert kept(options.split(",")) == left


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_an_option_that_is_not_listed_is_dropped(name: str, value: str) -> None:
    """Whatever the next file system invents."""
    assert kept([f"x-{name}={value}", f"x-{name}"]) == ""


@pytest.mark.parametrize("value", ["10.0.0.1", "fe80::1", "/home/jane", "jane@acme", "", "x" * 40])
def test_a_listed_option_with_an_odd_value_is_dropped(value: str) -> None:
    """An address or a path is no setting."""
    assert kept([f"cache={value}"]) == ""
