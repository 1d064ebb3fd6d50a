"""PURE. From trials to summary, findings, recommendations and sizing."""
