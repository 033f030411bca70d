"""Bridges to other libraries: a file for each, which needs that library only when it is imported.

* `dp_accounting` (``pip install 'pld-shuffle[interop]'``): privacy loss distributions both ways, and a
  `PrivacyAccountant` for Google's events.
* `flower`, `pfl`, `opendp` (extras of the same names): Flower's accountant and strategy, a callback of pfl-research, a
  `PrivacyProfile` of OpenDP.

What an imported distribution becomes here is `mechanisms.imported`. docs/interop.md has examples.
"""
