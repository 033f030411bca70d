"""From pairs to delta: laws on a lattice, their composition, and brackets of the wanted width."""
