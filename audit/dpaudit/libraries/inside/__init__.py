"""Calls other libraries.  This package also runs in private environments, which do not contain dpaudit.

Therefore its modules need only the standard library of Python 3.8 or later.  Each module is named after a library and
has three functions.  `called` makes an object from plain values of a config.  `facts` reads plain facts about an
object, from which dpaudit derives the claim and the pairs.  `sample` runs the object.
"""
