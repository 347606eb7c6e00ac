"""What holds of several audits together."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.inference.suites import e_bh
from dpaudit.result import AuditResult


def named_together(results: Sequence[AuditResult]) -> str:
    """Which of many claims are called false together, in words; "" if none of several is.

    Each verdict holds alone: of twenty true claims one is refuted on the average at 95 %.  e-BH bounds the share of
    true claims among those named instead, see `inference.suites`.
    """
    refuted = [result for result in results if result.violated]
    if len(results) < 2 or not refuted:
        return ""
    rate = max(1 - result.confidence for result in results)
    chosen = e_bh([result.e_value for result in results], false_discovery_rate=rate)
    named = [results[i].name for i in chosen]
    words = (
        f"{len(results)} audits together, false discovery rate {100 * rate:.3g} % (e-BH): "
        f"called false are {', '.join(named) or 'none'}."
    )
    if alone := [result.name for result in refuted if result.name not in named]:
        confidence = 1 - rate / len(results)
        words += (
            f"  Refuted alone only: {', '.join(alone)}; --confidence {confidence:.6g} lets evidence grow until it "
            "counts among so many."
        )
    return words
