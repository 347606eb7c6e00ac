"""The order in which Python lists a set differs between processes, and must not affect features."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from ..other_hashes import output_with_other_hashes


def test_features_of_a_large_set_do_not_depend_on_the_order_of_hashes() -> None:
    code = (
        "from dpaudit.outputs.parts import parts_of; import hashlib;"
        "found = parts_of({f'name {i}' for i in range(6000)});"
        "print(hashlib.sha256(repr(sorted(found.counts)).encode()).hexdigest())"
    )
    elsewhere = output_with_other_hashes(code)
    with redirect_stdout(io.StringIO()) as here:
        exec(code)
    assert here.getvalue() == elsewhere != ""
