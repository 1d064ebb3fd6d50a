"""Bytes per second and latency of mounted paths alone, with no loader in between."""

from iobench.probes.disk.plan import plan, plan_layouts
from iobench.probes.disk.run import run
from iobench.probes.disk.settings import DiskSettings
from iobench.probes.disk.testfile import clean

__all__ = ["DiskSettings", "clean", "plan", "plan_layouts", "run"]
