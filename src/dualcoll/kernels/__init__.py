"""numba kernels: arrays in, arrays out. Nothing else imports numba."""
