"""Numerical tools that know nothing of privacy: sides, input checks, lattices, convolutions, searches."""
