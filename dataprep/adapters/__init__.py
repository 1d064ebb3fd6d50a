"""Bridges to the frameworks that read the shards; nothing in the core imports from here."""
