"""Re-reads an output and says what is wrong with it, and where."""

from dataprep.verification.duplicates import Duplicates
from dataprep.verification.faults import Depth, Fault, Verification
from dataprep.verification.leakage import compare, leakage
from dataprep.verification.output import splits_in, verify

__all__ = [
    "Depth",
    "Duplicates",
    "Fault",
    "Verification",
    "compare",
    "leakage",
    "splits_in",
    "verify",
]
