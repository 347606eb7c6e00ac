"""GitHub Actions: one workflow command for each audit, which becomes an annotation of the config.

The format is GitHub's "Workflow commands for GitHub Actions": `::error file=F,line=1,title=T::message`.
"""

from __future__ import annotations

from dpaudit.result.values import Verdict
from dpaudit.text.printable import one_line
from dpaudit_reports.formats.facts import sentence
from dpaudit_reports.formats.run import Audited, Run, Screen

_LEVELS = {Verdict.VIOLATION: "error", Verdict.NO_VIOLATION: "notice", Verdict.INCONCLUSIVE: "warning"}


def text(run: Run, screen: Screen) -> str:
    """Return one line for each audit: error, warning or notice.  A failed audit gets an error."""
    return "".join(f"{_command(audited)}\n" for audited in run.audits)


def _command(audited: Audited) -> str:
    failed = "error" if audited.failed else "warning"
    level = failed if audited.result is None else _LEVELS[audited.result.verdict]
    properties = {"title": f"{audited.sign.sign} {audited.name}"}
    if audited.file is not None:
        properties = {"file": audited.file.as_posix(), "line": str(audited.line), **properties}
    named = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{level} {named}::{_data(sentence(audited))}"


def _data(words: str) -> str:
    """Escape a message as GitHub's toolkit does, so that foreign text cannot begin another command."""
    return one_line(words).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    return _data(words).replace(":", "%3A").replace(",", "%2C")
