"""Exact, independent proof of what a plan claims: rational arithmetic, no solver, no kernel."""
