"""Figures and delays that are known beforehand, measured: does the harness find them?"""

from __future__ import annotations

from iobench.selftest.known import Check, checks
from iobench.selftest.whole import Injected, injected

__all__ = ["Check", "Injected", "checks", "injected"]
