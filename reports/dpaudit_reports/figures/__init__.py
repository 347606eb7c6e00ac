"""Figures of a result, drawn with matplotlib's objects: no state that others could see or change.

Every figure is made of panels of half a page's width: two side by side on paper, one below the other on a phone.
One file draws one kind of panel; `canvas` knows how they all look.
"""
