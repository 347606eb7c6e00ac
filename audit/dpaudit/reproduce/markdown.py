"""Writes a script as Markdown for an issue tracker."""

from __future__ import annotations

from dpaudit.reproduce.script import Script
from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.text.rounding import percent_at_least

_BACKGROUND = (
    "A claim of differential privacy limits how much more likely an event may be on one of two neighbouring datasets "
    "than on the other."
)


def as_markdown(result: AuditResult, script: Script) -> str:
    """Return Markdown with the finding and the script.

    All foreign text is inside the block of code, whose lines are ASCII and never begin with a fence.
    """
    confidence = percent_at_least(result.confidence).replace("\u00a0", " ")
    todo = "  Fill in the places marked FILL IN first." if script.missing else ""
    return f"""\
### A claim of differential privacy is refuted for one pair of datasets

{_BACKGROUND}
An audit with dpaudit refuted the claim that the script names, with confidence {confidence}.
The p-value of the audit is at most {p_value_words(result)}.
The verdict concerns this claim, this pair of datasets and the audited version only.

The script needs Python, numpy, scipy and the audited mechanism, but not dpaudit.{todo}
It makes {script.runs:,} runs on each dataset, counts one event, and prints an exact p-value.
The p-value assumes that runs are independent, so a mechanism that keeps noise between runs makes it invalid.

```python
{script.text}```

A p-value above the required level does not show that the claim is true.
"""
