"""How loops are compiled: when first called, and once per machine where there is a place to keep the result.

Numba keeps compiled kernels next to the source or in the user's cache folder. Where neither can be written
(a locked container), they go to a temporary folder of this process, with one warning.

To load numba takes as long as thousands of points of a profile take in plain Python, and to compile takes ten times
that. So a kernel that fills arrays point by point may be `gradual`: it is interpreted while that is the shorter way.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

# Seconds that all kernels together spend in plain Python before they are loaded, if they were compiled by an earlier
# process (which takes about as long), and before they are compiled. What is at hand is loaded at once where numba is.
LOADING, COMPILING = 0.4, 2.0


class Kernel:
    """A function that is compiled when it is first called, without the interpreter's lock."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @functools.cached_property
    def compiled(self) -> Any:
        """Numba's function, not compiled yet."""
        import numba

        try:
            return numba.njit(cache=True, nogil=True, **self._options)(self._function)
        except RuntimeError as error:
            if "cannot cache" not in str(error) or _fallback == numba.config.CACHE_DIR:
                raise
            _use_temporary_cache()
            return numba.njit(cache=True, nogil=True, **self._options)(self._function)

    @property
    def _numba_type_(self) -> Any:
        """Numba asks for this where another kernel calls this one."""
        return self.compiled._numba_type_

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The function in plain Python, with all kernels that it calls."""
        space: dict[str, Any] = dict(self._function.__globals__)  # type: ignore[attr-defined]
        for name, value in space.items():
            if isinstance(value, Kernel):
                space[name] = FunctionType(value._function.__code__, space, name)  # type: ignore[attr-defined]
        return FunctionType(self._function.__code__, space)  # type: ignore[attr-defined]

    @functools.cached_property
    def kept(self) -> bool:
        """Whether compiled code of an earlier process is at hand."""
        code = self._function.__code__  # type: ignore[attr-defined]
        name = f"{Path(code.co_filename).stem}.{code.co_name}-{code.co_firstlineno}.*.nbi"
        return any(Path(self.compiled.stats.cache_path).glob(name))


class Inner(Kernel):
    """A kernel that only other kernels call: compiled with them and kept with them. From Python it is interpreted."""

    def __call__(self, *arguments: Any) -> Any:
        return self.plain(*arguments)

    @functools.cached_property
    def compiled(self) -> Any:
        import numba

        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **self._options}
        return numba.njit(nogil=True, **options)(self._function)


class Gradual(Kernel):
    """A kernel that is interpreted while that is the shorter way.

    seconds : its arguments -> what one point takes in plain Python, roughly. points : names of the arguments that are
    arrays over points, along their last axis, and that are filled or read each point by itself; none if the kernel
    is one piece. lean : whether all that is asked of arrays is their shape and single elements; they are interpreted
    as memoryviews then, which is twice as fast. Interpreted or compiled, the same operations are done on the same
    numbers; powers may be rounded differently, and sums that may be taken in any order.
    """

    spent = 0.0  # seconds of this process in plain Python, roughly: threads may forget some

    def __init__(
        self, function: Callable[..., Any], seconds: Callable[..., float], points: tuple[str, ...],
        lean: bool, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(function, **options)
        self._lean = lean
        names = list(signature(function).parameters)
        self._points = [names.index(name) for name in points]
        self._seconds = seconds
        self._settled = False  # from now on compiled

    def __call__(self, *arguments: Any) -> Any:
        if self._settled:
            return self.compiled(*arguments)
        size = arguments[self._points[0]].shape[-1] if self._points else 1
        if self._longer(self._seconds(*arguments) * size):
            return self.compiled(*arguments)
        if not self._points:
            return self._tried(arguments, arguments)
        for i in range(size):
            one = list(arguments)
            for k in self._points:
                one[k] = one[k][..., i : i + 1]
            self._tried(one, arguments)
            if self._longer(0.0):
                return self.compiled(*arguments)
        return None

    def _longer(self, more: float) -> bool:
        """Whether it is time to stop interpreting, if so many seconds more are expected."""
        spent = Gradual.spent + more
        if spent > LOADING or "numba" in sys.modules:
            self._settled = spent > COMPILING or self.kept
        return self._settled

    def _tried(self, part: Sequence[Any], whole: Sequence[Any]) -> Any:
        """Interpret the kernel on `part`; where Python refuses to go on with infinities, compile it for the whole."""
        if self._lean:
            self.plain.__globals__["np"] = _Views
            part = [x.data if isinstance(x, np.ndarray) else x for x in part]
        before = [x.copy() if isinstance(x, np.ndarray) else x for x in whole]
        begun = time.thread_time()
        try:
            with np.errstate(all="ignore"):
                return self.plain(*part)
        except (ArithmeticError, ValueError):
            self._settled = True
            for new, old in zip(whole, before, strict=True):
                if isinstance(new, np.ndarray) and new.flags.writeable:
                    new[...] = old
            return self.compiled(*whole)
        finally:
            Gradual.spent += time.thread_time() - begun


def jit(function: Callable[..., Any]) -> Kernel:
    """`function` compiled without the interpreter's lock."""
    return Kernel(function)


def inner(function: Callable[..., Any]) -> Kernel:
    """A kernel that only others call."""
    return Inner(function)


def unchecked(function: Callable[..., Any]) -> Kernel:
    """As `inner`; a division by zero gives an infinity or no number, as in numpy."""
    return Inner(function, error_model="numpy")


def reordering(function: Callable[..., Any]) -> Kernel:
    """As `inner`; sums may be taken in any order, with fused products. Nothing else is relaxed."""
    return Inner(function, fastmath={"reassoc", "contract"})


def gradual(
    seconds: Callable[..., float], *points: str, lean: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Kernel]:
    """A decorator that makes a `Gradual` kernel."""
    return lambda function: Gradual(function, seconds, points, lean, **options)


class _Views:
    """What a lean kernel has for numpy."""

    @staticmethod
    def empty(shape: Any) -> memoryview:
        return np.empty(shape).data

    @staticmethod
    def zeros(shape: Any) -> memoryview:
        return np.zeros(shape).data


_fallback: str | None = None


def _use_temporary_cache() -> None:
    import numba

    global _fallback
    _fallback = tempfile.mkdtemp(prefix="pld_shuffle_")
    numba.config.CACHE_DIR = _fallback
    warnings.warn(
        f"compiled kernels cannot be kept beside the package; they go to {_fallback} for this process."
        " Set NUMBA_CACHE_DIR to a writable folder to compile only once.",
        RuntimeWarning,
        stacklevel=2,
    )
