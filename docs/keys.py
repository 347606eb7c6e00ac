"""Write the keys of configs into docs/configuration.md: python docs/keys.py

The script takes the JSON Schema that `dpaudit schema` prints.  `tests/test_cli_habits.py` compares the page
with this schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpaudit.config.models import schema

PAGE = Path(__file__).parent / "configuration.md"
BEGIN, END = "<!-- keys: begin -->", "<!-- keys: end -->"
SECTIONS = {
    "AuditConfig": "An audit",
    "MechanismConfig": "mechanism",
    "ServiceConfig": "http",
    "DatabaseConfig": "sql",
    "PairConfig": "An entry of pairs",
    "SearchConfig": "search",
}
_MAX_DEFAULT = 40  # maximum number of characters of a default value
_NAMES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "array": "list"}


def sections() -> str:
    """Return a table of keys for each part of a config."""
    models = schema()["$defs"]
    missing = models.keys() - SECTIONS.keys()
    if missing:
        raise ValueError(f"add titles for {', '.join(sorted(missing))} to SECTIONS")
    return "\n".join(line for name, title in SECTIONS.items() for line in _section(title, models[name]))


def page_with(found: str, page: str) -> str:
    """Return the page with the given sections between its two marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"{PAGE.name} must contain {BEGIN!r} and {END!r} once each")
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{found}\n{END}{rest.partition(END)[2]}"


def _section(title: str, model: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### {title}", "", "| key | value | default | meaning |", "|---|---|---|---|")
    required = model.get("required", [])
    for key, about in model["properties"].items():
        default = "required" if key in required else _default(about)
        words = about.get("description", "").replace("|", "\\|")
        yield f"| `{key}` | {_kind(about)} | {default} | {words} |"
    yield ""


def _kind(about: Mapping[str, Any]) -> str:
    """Return the kinds of allowed values in words."""
    if "enum" in about:
        return ", ".join(f"`{value}`" for value in about["enum"])
    if "const" in about:
        return f"`{json.dumps(about['const'])}`"
    if "anyOf" in about:
        kinds = dict.fromkeys(_kind(one) for one in about["anyOf"] if one.get("type") != "null")
        if "number" in kinds:
            kinds.pop("whole number", None)
        return " or ".join(kinds)
    if "$ref" in about:
        return "keys below"
    return _NAMES.get(about.get("type", ""), "mapping" if about.get("type") == "object" else "any value")


def _default(about: Mapping[str, Any]) -> str:
    value = about.get("default")
    if value is None or value == "":
        return ""
    words = json.dumps(value) if not isinstance(value, str) else value
    return f"`{words}`" if len(words) <= _MAX_DEFAULT else "see the schema"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page_with(sections(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
