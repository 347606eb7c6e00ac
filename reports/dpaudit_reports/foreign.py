"""Sections of other packages, from entry points of the group `dpaudit.sections`.

A section is a function from a result to blocks, like the functions in `sections`.  Foreign sections follow the
project's own sections, sorted by name.  If a section fails, a message replaces it and the rest of the report is kept.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from xml.etree import ElementTree

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Figure, Heading, Panel, Paragraph
from dpaudit_reports.html_blocks import blocks_html

GROUP = "dpaudit.sections"


def foreign_blocks(result: AuditResult) -> tuple[Block, ...]:
    """Return the blocks of all installed sections of other packages."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(block for point in points for block in _attempt(point, result))


def _attempt(point: EntryPoint, result: AuditResult) -> tuple[Block, ...]:
    try:
        blocks = tuple(_drawn(block) for block in point.load()(result))
        if blocks and not isinstance(blocks[0], Heading):
            blocks = (Heading(point.name), *blocks)
        blocks_html(blocks)  # an invalid block fails here and not in the middle of a page
    except Exception as error:  # foreign code may raise anything
        words = f"The section {point.name} ({point.value}) failed: {type(error).__name__}: {error}"
        return Heading(point.name), Paragraph(words)
    return blocks


def _drawn(block: Block) -> Block:
    """Return the block with finished drawings, so that a faulty drawing fails here."""
    if not isinstance(block, Figure):
        return block
    return Figure(tuple(_drawn_panel(panel) for panel in block.panels), block.caption)


def _drawn_panel(panel: Panel) -> Panel:
    svg = panel.svg()
    if not ElementTree.fromstring(svg).tag.endswith("svg"):
        raise ValueError("a panel must be drawn as SVG, with <svg> as its outermost element")
    return Panel(lambda: svg, panel.alt, panel.title)
