"""What is wired: the fabric's model, its files, the catalogue and the importers."""
