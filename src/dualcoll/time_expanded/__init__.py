"""Schedules on the time-expanded network: TE-CCL (Liu et al., SIGCOMM 2024) on open solvers."""
