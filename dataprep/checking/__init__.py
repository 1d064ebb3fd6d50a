"""Check outputs: verify them, find duplicates, and inspect their records."""

from dataprep.checking.duplicates import Duplicates, leakage
from dataprep.checking.result import Depth, Fault, Verification
from dataprep.checking.verify_output import verify

__all__ = ["Depth", "Duplicates", "Fault", "Verification", "leakage", "verify"]
