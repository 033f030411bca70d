"""Bridges to other accounting libraries; each needs its library only when it is imported.

`interop.dp_accounting` (extra: ``pip install 'pld-shuffle[interop]'``) exchanges privacy loss distributions
with Google's dp_accounting and is a `PrivacyAccountant` for its events. Without any library: `imported`, what
an imported distribution becomes here, and `poisson`, the Gaussian mechanism on a Poisson sample.
"""
