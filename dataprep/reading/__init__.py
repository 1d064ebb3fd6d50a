"""The way from a complete output back to samples, for training loops."""
