"""Great Expectations: loaded late and with no more than judging needs, and asked for as little as will do."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.loading import loaded_for_good, postponed

if TYPE_CHECKING:
    import pandas as pd

    from rag_pipeline.quality.expectations import Rule

_loading: Final = Lock()
_UNUSED: Final = ("scipy", "scipy.stats", "altair")
"""What Great Expectations loads for distributions and charts, none of which is asked for: half of its own time."""


def judge(frame: pd.DataFrame, rules: Sequence[Rule]) -> list[Mapping[str, Any]]:
    """A result per rule, in order, as Great Expectations gives it.

    Of a rule that holds it is asked what it observed; only of those that do not, which rows offend and with what,
    which would take it as long again for each of them.
    """
    if not rules:
        return []
    frame = frame.reset_index(drop=True)
    results = _results(frame, rules, detail="BASIC")
    failed = [rule for rule in rules if not results[rule.name]["success"]]
    if failed:
        results |= _results(frame, failed, detail="COMPLETE")
    return [results[rule.name] for rule in rules]


def _results(frame: pd.DataFrame, rules: Sequence[Rule], *, detail: str) -> dict[str, Mapping[str, Any]]:
    gx, whole_frame = ready()
    expectations = [
        # Two equal expectations would be one: the rule's name keeps them apart, and tells the results apart.
        getattr(gx.expectations, rule.expectation)(**rule.arguments, meta={"rule": rule.name})
        for rule in rules
    ]
    batch = whole_frame.get_batch({"dataframe": frame})
    # Neither the suite nor its result are stored: that would be done in YAML, and nobody reads it.
    suite = gx.ExpectationSuite(name="rules", expectations=expectations)
    result = batch.validate(suite, result_format={"result_format": detail})
    return {found.expectation_config.meta["rule"]: found.to_json_dict() for found in result.results}


def ready() -> tuple[Any, Any]:
    """Great Expectations, and a batch definition of whatever frame it is given: once for all stages of a process."""
    with _loading:  # one thread may be at it when another one needs it
        return _ready()


@cache
def _ready() -> tuple[Any, Any]:
    # Who runs a pipeline did not ask to send anybody what it checks.
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    # Beside the work of other threads, which might import them meanwhile, there are no stand-ins.
    is_alone = threading.current_thread() is threading.main_thread()
    with loaded_for_good(), postponed(*_UNUSED) if is_alone else nullcontext():
        import great_expectations as gx
        import great_expectations.expectations
        from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_pandas("stage").add_dataframe_asset("frame")
    return gx, asset.add_batch_definition_whole_dataframe("all")
