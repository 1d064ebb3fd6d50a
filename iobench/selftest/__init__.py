"""Figures and delays that are known beforehand, measured: does the harness find them?"""

from __future__ import annotations

from iobench.selftest.known import Check, checks
from iobench.selftest.told import as_json, tell
from iobench.selftest.whole import Injected, injected

__all__ = ["Check", "Injected", "as_json", "checks", "injected", "tell"]
