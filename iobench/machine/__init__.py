"""What this machine is, and what it does while something is measured."""
