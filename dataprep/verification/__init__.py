"""Verify an output: read it again, and report what is wrong and where."""

from dataprep.verification.duplicates import Duplicates, leakage
from dataprep.verification.output import verify
from dataprep.verification.result import Depth, Fault, Verification

__all__ = ["Depth", "Duplicates", "Fault", "Verification", "leakage", "verify"]
