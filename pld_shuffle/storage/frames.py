"""Tables as pandas data frames, for those who have pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame of these columns. ImportError, which says what to do, without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame needs pandas: python -m pip install pandas") from error
    return pandas.DataFrame(dict(columns))
