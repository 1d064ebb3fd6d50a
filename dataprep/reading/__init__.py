"""Read samples back from a complete output, for training loops."""
