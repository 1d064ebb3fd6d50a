"""Commands of their own modules, and what commands share that run trials; ``cli`` names them."""
