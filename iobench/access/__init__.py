"""How a loader reaches data on a store: downloaded first, as a stream, on demand, or by a mount."""
