"""Dominating pairs, and their atoms on a side of the truth."""
