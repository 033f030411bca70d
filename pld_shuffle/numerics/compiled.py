"""Loops in plain Python that are compiled once per machine, and the one rule of when.

A kernel is a function of numbers and arrays. Those that Python calls say what they take:

    f, i, b         a float, an int, a bool
    1, 2, 3         an array of floats, of so many dimensions, that is read; k1, k2 ... one of ints
    o1, ok1 ...     one that is filled
    ...p            its last axis counts points, each read or filled by itself

*The rule.* Kernels are interpreted until all of them together would have taken LOADING seconds of this process. From
then on they are loaded if an earlier process left them; otherwise, once PATIENCE seconds would have been spent, all
kernels of the package are compiled at once, which one line of the log announces. `warm_up` does so at any time.

Interpreted or compiled, the same operations are done on the same numbers; powers may be rounded differently, and sums
that may be taken in any order. Interpreted arrays are memoryviews, which are twice as fast: kernels ask of them their
shape and single elements only, and of numpy `empty`, `zeros` and `full`. (Those with `rows` see numpy's arrays.)
"""

from __future__ import annotations

import atexit
import functools
import importlib
import logging
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from .tuning import LOADING, PATIENCE

PACKAGE = Path(__file__).parents[1]
LOG = logging.getLogger(PACKAGE.name)

_entries: list[Kernel] = []  # those that Python calls
_warming = threading.RLock()
_fallback: tempfile.TemporaryDirectory[str] | None = None


class Kernel:
    """A function that may be compiled. Without `takes` only other kernels call it; from Python it is interpreted.

    takes : what each argument is; see the module. seconds : its arguments -> what a point takes, interpreted.
    """

    spent = 0.0  # seconds of this process in plain Python: threads may forget some

    def __init__(
        self, function: Any, takes: str = "", seconds: Callable[..., float] | None = None, *,
        rows: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self._function = function
        self._takes = takes.split()
        self._seconds = seconds
        self._rows = rows
        self._options = {"nogil": True, **options}
        self._points = [k for k, kind in enumerate(self._takes) if kind.endswith("p")]
        if takes:
            _entries.append(self)

    def __call__(self, *arguments: Any) -> Any:
        if self._seconds is None:
            return self.plain(*arguments)
        if "compiled" not in self.__dict__:
            size = arguments[self._points[0]].shape[-1] if self._points else 1
            each = self._seconds(*arguments)
            filled = [k for k, kind in enumerate(self._takes) if kind.startswith("o")]
            before = [arguments[k].copy() for k in filled]
            result = None
            for i in range(size):
                spent = Kernel.spent + each * (size - i)
                if spent > LOADING and (spent > PATIENCE or self.kept):  # time to stop interpreting
                    break
                part = list(arguments)
                for k in self._points:
                    part[k] = part[k][..., i : i + 1]
                try:
                    result = self._interpreted(part)
                except (ArithmeticError, ValueError):  # Python refuses to go on with infinities
                    break
            else:
                return result
            for k, old in zip(filled, before, strict=True):
                arguments[k][...] = old
            if not self.kept:
                warm_up()
        given = zip(arguments, self._takes, strict=True)
        return self.compiled(*(np.ascontiguousarray(x) if k[0] in "123k" else x for x, k in given))

    def _interpreted(self, arguments: Sequence[Any]) -> Any:
        begun = time.thread_time()
        try:
            if not self._rows:
                arguments = [x.data if isinstance(x, np.ndarray) else x for x in arguments]
            with np.errstate(all="ignore"):
                return self.plain(*arguments)
        finally:
            Kernel.spent += time.thread_time() - begun

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The function in plain Python, with all kernels that it calls."""
        space: dict[str, Any] = dict(self._function.__globals__)
        for name, value in space.items():
            if isinstance(value, Kernel):
                space[name] = FunctionType(value._function.__code__, space, name)
        if not self._rows:
            space["np"] = _VIEWS
        return FunctionType(self._function.__code__, space)

    @property
    def _numba_type_(self) -> Any:
        """Numba asks for this where another kernel calls this one: then it is compiled with that one."""
        return self._inner._numba_type_

    @functools.cached_property
    def _inner(self) -> Any:
        import numba

        wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return numba.njit(**wrappers, **self._options)(self._function)

    @functools.cached_property
    def _outer(self) -> Any:
        """Numba's function, neither loaded nor compiled yet."""
        import numba

        global _fallback
        try:
            kept = numba.config.CACHE_DIR
            if os.path.isdir(kept) and os.listdir(kept) and not os.access(kept, os.W_OK):
                raise RuntimeError(f"cannot cache in {kept}")  # numba would look elsewhere, and compile there
            return numba.njit(cache=True, **self._options)(self._function)
        except RuntimeError as error:
            if "cannot cache" not in str(error) or _fallback is not None:
                raise
            _fallback = tempfile.TemporaryDirectory(prefix="pld_shuffle_")
            atexit.register(_fallback.cleanup)
            # Numba does not read what it cannot write.
            if os.path.isdir(numba.config.CACHE_DIR) and os.listdir(numba.config.CACHE_DIR):
                shutil.copytree(numba.config.CACHE_DIR, _fallback.name, dirs_exist_ok=True)
            else:
                warnings.warn(
                    f"compiled kernels cannot be kept beside the package; they go to {_fallback.name} for this process."
                    " Set NUMBA_CACHE_DIR to a writable folder to compile only once.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            numba.config.CACHE_DIR = _fallback.name
            return numba.njit(cache=True, **self._options)(self._function)

    @functools.cached_property
    def _signature(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        import numba

        def kind_of(word: str) -> Any:
            word = word.removesuffix("p")
            if word in ("f", "i", "b"):
                return {"f": numba.float64, "i": numba.int64, "b": numba.boolean}[word]
            item = numba.int64 if "k" in word else numba.float64
            return numba.types.Array(item, int(word[-1]), "C", readonly="o" not in word)

        return tuple(map(kind_of, self._takes))

    @functools.cached_property
    def compiled(self) -> Any:
        """The compiled function: loaded, or else compiled now."""
        from numba.core.runtime import rtsys

        with _warming:
            cache, context = self._outer._cache, self._outer.targetctx
            rtsys.initialize(context)
            # Numba's own way to load begins with all that compiling needs, half a second.
            with cache._guard_against_spurious_io_errors():
                if (kept := cache._load_overload(self._signature, context)) is not None:
                    self._outer.add_overload(kept)
            self._outer.compile(self._signature)
            self._outer.disable_compile()
        return self._outer

    @property
    def kept(self) -> bool:
        """Whether numba will load what this or an earlier process has compiled, for this source and processor."""
        cache, codegen = self._outer._cache, self._outer.targetctx.codegen()
        return cache._index_key(self._signature, codegen) in cache._cache_file._load_index()


def expect(seconds: float) -> None:
    """Say beforehand that loops will take so long, interpreted: then none is begun that would be given up."""
    Kernel.spent += seconds


def kernels() -> list[Kernel]:
    """All that Python calls, with the modules that have them imported, and what else is slow to load."""
    paths = sorted([*PACKAGE.glob("numerics/*.py"), *PACKAGE.glob("pairs/*.py")])  # all that have kernels
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    for name in ("scipy.special", *names):
        importlib.import_module(name)
    return _entries


def warm_up() -> None:
    """Load every compiled loop of the package, and compile those that no earlier process has left on this machine.

    About a minute where nothing is kept, a second otherwise. One line of the log announces the former.
    """
    every = kernels()
    with _warming:
        missing = sum(not kernel.kept for kernel in every)
        if missing:
            LOG.warning("compiling %d loops, once on this machine; about a minute", missing)
        for kernel in every:
            kernel.compiled  # noqa: B018


def kernel(takes: str, seconds: Callable[..., float], **options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """A decorator that makes a kernel for Python to call."""
    return lambda function: Kernel(function, takes, seconds, **options)


#: A kernel that only others call.
inner = Kernel
#: The same; a division by zero gives an infinity or no number, as in numpy.
unchecked = functools.partial(Kernel, error_model="numpy")
#: The same; sums may be taken in any order, with fused products. Nothing else is relaxed.
reordering = functools.partial(Kernel, fastmath={"reassoc", "contract"})


def _viewed(make: Any) -> Any:
    return lambda *given: make(*given).data


#: What interpreted kernels have for numpy.
_VIEWS = SimpleNamespace(int64=np.int64, empty=_viewed(np.empty), zeros=_viewed(np.zeros), full=_viewed(np.full))
