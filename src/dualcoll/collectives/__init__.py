"""What must be true: the collectives, their names and their bandwidth conventions."""
