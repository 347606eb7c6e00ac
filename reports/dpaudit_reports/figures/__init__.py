"""Figures of a result, drawn with matplotlib's objects, without state that is shared with other code.

Every figure consists of panels of half a page's width: two side by side on paper, one below the other on a phone.
Each module draws one kind of panel; `canvas` holds what they share.
"""
