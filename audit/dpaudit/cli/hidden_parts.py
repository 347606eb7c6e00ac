"""Computes hashes of the masked parts of a mechanism, so that a replay runs the same mechanism or refuses.

A mask may hide more than a password.  In `sh -c "TOKEN=x; ./program"` the quoted script is one argument, so a mask of
the token hides the program, too.  The hash has a salt and is slow to compute, which protects short passwords from
guessing.
"""

from __future__ import annotations

import hmac
import re
import secrets

from dpaudit.config import PlannedAudit
from dpaudit.sampling.identity_differences import KEYED
from dpaudit.sampling.store_identity import Secret

NOTHING = "nothing"
_SALT_BYTES = 16
_FORM = re.compile(rf"salt ([0-9a-f]{{{2 * _SALT_BYTES}}}), ({KEYED}[0-9a-f]{{64}})")


def hidden_of(planned: PlannedAudit) -> str:
    """Return the salted hash of a mechanism for its result, or "nothing" if no part of the mechanism is masked."""
    if not planned.is_masked:
        return NOTHING
    salt = secrets.token_bytes(_SALT_BYTES)
    return f"salt {salt.hex()}, {Secret(planned.mechanism_text).keyed(salt)}"


def is_hidden_in(planned: PlannedAudit, recorded: str) -> bool:
    """Whether the mechanism of an audit has the hash that a result recorded."""
    match = _FORM.fullmatch(recorded)
    if match is None:
        return False
    return hmac.compare_digest(Secret(planned.mechanism_text).keyed(bytes.fromhex(match[1])), match[2])
