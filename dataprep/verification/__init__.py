"""Re-reads an output and says what is wrong with it, and where."""

from dataprep.verification.faults import Depth, Fault, Verification
from dataprep.verification.output import verify

__all__ = ["Depth", "Fault", "Verification", "verify"]
