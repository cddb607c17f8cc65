"""Running schedules on real data."""
