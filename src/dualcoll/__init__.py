"""dualcoll: how fast can a collective run on this fabric, what limits it, and what should run."""
