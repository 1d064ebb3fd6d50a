"""What commands share that run trials."""
