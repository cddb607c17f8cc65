"""Ready-made fabrics by name."""
