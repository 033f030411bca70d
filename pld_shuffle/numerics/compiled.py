"""How loops are compiled: once per machine where there is a place to keep the result.

Numba keeps compiled kernels next to the source or in the user's cache folder. Where neither can be written
(a locked container), they go to a temporary folder of this process, with one warning.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numba


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """`function` compiled without the interpreter's lock; `options` as for `numba.njit`."""
    try:
        return numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error) or _fallback == numba.config.CACHE_DIR:
            raise
        _use_temporary_cache()
        return numba.njit(cache=True, nogil=True, **options)(function)


def unchecked(function: Callable[..., Any]) -> Any:
    """As `jit`; a division by zero gives an infinity or no number, as in numpy."""
    return jit(function, error_model="numpy")


def reordering(function: Callable[..., Any]) -> Any:
    """As `jit`; sums may be taken in any order, with fused products. Nothing else is relaxed."""
    return jit(function, fastmath={"reassoc", "contract"})


_fallback: str | None = None


def _use_temporary_cache() -> None:
    global _fallback
    _fallback = tempfile.mkdtemp(prefix="pld_shuffle_")
    numba.config.CACHE_DIR = _fallback
    warnings.warn(
        f"compiled kernels cannot be kept beside the package; they go to {_fallback} for this process."
        " Set NUMBA_CACHE_DIR to a writable folder to compile only once.",
        RuntimeWarning,
        stacklevel=2,
    )
