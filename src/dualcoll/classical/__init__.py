"""Classical algorithms as schedules: ring, tree, halving and doubling, hierarchies."""
