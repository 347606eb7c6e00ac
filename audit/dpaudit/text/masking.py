"""Masks text that looks like a secret in commands, URLs and settings, before a file records them.

Results are meant to be published, but the command of an audit may hold a password.  Masks replace the user of a URL,
values with a name that means a secret (`--token abc`, `API_KEY=abc`, `?signature=abc`), common access tokens, cookies,
and passwords of well-known programs (`mysql -pabc`, see `password_options`).  A secret under a harmless name is not
recognised.  In particular, `-p abc` of any other program is not masked.

A mask may hide code: in `sh -c "TOKEN=x; ./program"` the script is one argument, and the mask covers the program, too.
Therefore dpaudit never masks the text that it shows before it runs a stranger's code.  A replay compares a hash of the
masked parts (`dpaudit.cli.hidden_parts`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from dpaudit.text.password_options import passwords_in, passwords_of

MASK = "***"

_SECRET = frozenset(
    ["auth", "authorization", "bearer", "cookie", "cookies", "credential", "credentials", "creds", "csrf", "xsrf"]
    + ["passin", "passout", "secrets", "sessid", "sessionid", "signature"]
    + ["contrasena", "contraseña", "kennwort", "motdepasse", "passwort"]
    + [f"{kind}key" for kind in ("access", "account", "aes", "api", "auth", "cipher", "client", "database", "db")]
    + [f"{kind}key" for kind in ("encryption", "hmac", "jwt", "license", "master", "priv", "private", "rsa", "secret")]
    + [f"{kind}key" for kind in ("service", "session", "shared", "signing", "storage", "subscription")]
)
"""Words that mean a secret, alone or as the end of a word.

The words include the keywords of detect-secrets, and those of Sentry's scrubber that mean a secret.
"""
_SECRET_ALONE = frozenset(
    ["cred", "jwt", "otp", "psk", "pw"] + [f"{kind}pw" for kind in ("bind", "db", "root", "user")]
)
_ENDINGS = ("pass", "passcode", "passphrase", "passwd", "password", "pwd", "secret", "token", *sorted(_SECRET))
_HARMLESS = frozenset(
    [f"{kind}pass" for kind in ("all", "band", "by", "com", "encom", "high", "low", "multi", "n", "one", "over")]
    + [f"{kind}pass" for kind in ("single", "sur", "tres", "two", "under")]
    + [f"pass{rest}" for rest in ("band", "fail", "rate", "through")]
    + [f"{kind}token" for kind in ("bos", "cls", "eos", "mask", "pad", "per", "sep", "stop", "unk")]
    + ["cookiejar"]
)
"""Harmless words that look secret because of their ending or beginning, such as "bypass" and "passrate".

A name may also contain such a word as two adjacent parts, such as "by_pass".
"""

_SCHEME = r"(?<![\w+.-])([A-Za-z][\w+.-]*://)"
_LOGIN = r"[^\s/:@?#'\"]*:(?!\d{0,5}(?![^\s/?#'\",;)]))"  # a user name and a colon, unless a port follows the colon
_USER = re.compile(rf"{_SCHEME}(?:[^\s/'\"]+|{_LOGIN}\S{{1,512}})@")
_USER_OF_WORD = re.compile(rf"((?:--?)?(?:[\w.-]+=)?){_SCHEME}{_LOGIN}.{{1,512}}@", re.S)  # may contain spaces
_USER_OF_DATABASE = re.compile(  # such URLs have no @ in the path, so 1/b is a password in postgres://u:1/b@host
    r"(?<![\w+.-])((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?)(?:\+\w+)?://)[^\s/:@?#'\"]*:\S{1,512}@"
)
_OPTION_USER = re.compile(
    r"(?<!\S)(-[uU]|--(?:proxy-)?user(?=[\s=]))((?:\s+|=)?['\"]?)(?!\d+:\d+(?!\S))[^\s:/'\"]+:[^\s'\"][^\s]*"
)
_NAMED = re.compile(r"(?<![\w.-])(-*)([A-Za-z_][\w.-]*)(['\"]?\s*\+?[=:](?:\s|\\\n)*|(?:\s|\\\n)+)")
_BETWEEN = frozenset("=:")
_NAME_OF_WORD = re.compile(r"-*[A-Za-z_][\w.-]*\s*\+?[=:]\s*")
_QUOTED = r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_VALUE = re.compile(
    r"(?:(?:bearer|basic|token)\s+)?"
    rf"(?:{_QUOTED}(?:{_QUOTED}|\\['\"][^\s'\"\\]*)*"  # 'a'\''b' is one word of a shell
    r"|(?:[^\s'\"]|['\"](?=[^\s'\"]))+)",
    re.I | re.S,
)
_VALUE_OF_HEADER = re.compile(r"[^\n'\"]+(?:\"[^\n\"]*\"[^\n'\"]*)*")  # Digest username="...", response="..."
_VALUE_IN_QUERY = re.compile(r"[^\s&#'\"]+")
_FLAG = re.compile(r"--|-[A-Za-z]?(?!\S)")
_TOKEN = re.compile(
    r"\bbearer\s+[^\s'\"]+|\b(?:gh[a-z]_|github_pat_|glpat-|hf_|dckr_pat_|pypi-|sk-|[rs]k_(?:live|test)_|xox[a-z]-)"
    r"[\w-]{12,}|\bnpm_[a-z0-9]{20,}|\b(?-i:A[KS]IA[A-Za-z0-9]{12,}|AIza[\w-]{12,})|\bya29\.[\w-]{12,}"
    r"|\b(?:gl(?:agent|cbt|dt|ft|imt|oas|ptt|rt|soat)-|shp[a-z]{2}_|do[a-z]_v1_|hv[bs]\.|dapi(?=[a-f0-9]{32})|gsk_|nvapi-|whsec_|rubygems_|lin_api_"
    r"|PMAK-|ATATT3|AGE-SECRET-KEY-)[\w-]{20,}|(?-i:\bSG\.[\w-]{16,}\.[\w-]{16,})|\b\d{8,10}:AA[\w-]{30,}"
    r"|(?<=hooks\.slack\.com/services/)[\w/]+|(?<=discord\.com/api/webhooks/)[\w/-]+"
    r"|(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]{0,40}KEY-----(?:(?!-----END )[\s\S])*(?:-----END [A-Z ]{0,40}-----)?",
    re.I,
)


def masked(text: str) -> str:
    """Return the text with a mask in place of anything that looks like a secret, in linear time."""
    text = _USER.sub(rf"\1{MASK}@", _USER_OF_DATABASE.sub(rf"\1{MASK}@", text))
    text = _OPTION_USER.sub(rf"\1\2{MASK}", text)
    text = _without(text, passwords_in(text))
    pieces, end = [], 0
    for match in _NAMED.finditer(text):
        dashes, name, separator = match.groups()
        # the value of an option may also be the next word, without = or : as in "--token abc"
        valued = not _BETWEEN.isdisjoint(separator) or (dashes and not _FLAG.match(text, match.end()))
        if match.start() < end or not valued or not is_secret(dashes + name):
            continue
        if stop := _end_of_value(text, match):
            pieces += [text[end : match.end()], MASK]
            end = stop
    return _TOKEN.sub(MASK, "".join([*pieces, text[end:]]))


def _without(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """Return the text with a mask in place of each range; the ranges are in order."""
    pieces, end = [], 0
    for start, stop in ranges:
        pieces += [text[end:start], MASK]
        end = stop
    return "".join([*pieces, text[end:]])


def _end_of_value(text: str, match: re.Match[str]) -> int:
    """Return where the value after a name ends; 0 if there is none."""
    before = text[match.start() - 1 : match.start()]
    start, separator = match.end(), match[3]
    if before in ("'", '"') and before not in separator:  # 'NAME=two words'
        stop = text.find(before, start)
        if stop > start:
            return stop
    if (
        match[2].lower().endswith(("authorization", "cookie"))
        and ":" in separator
        and text[start : start + 1] not in ("'", '"')
    ):
        form = _VALUE_OF_HEADER
    else:
        form = _VALUE_IN_QUERY if before in ("?", "&") else _VALUE
    value = form.match(text, start)
    return value.end() if value else 0


def masked_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command, masked.

    A mask replaces the word after an option such as `--token`.  After a name such as `TOKEN=` at the beginning of a
    word, the mask replaces the rest of the word.
    """
    return [
        _masked_word(before, word, secret)
        for before, word, secret in zip(["", *words], words, passwords_of(words), strict=False)
    ]


def _masked_word(before: str, word: str, secret: str = "") -> str:
    if secret:
        return f"{word.removesuffix(secret)}{MASK}"
    if before.startswith("-") and "=" not in before and is_secret(before) and not _FLAG.match(word):
        return MASK
    if before in ("-u", "-U", "--user", "--proxy-user") and _OPTION_USER.match(f"{before} {word}"):
        return MASK
    if (named := _NAME_OF_WORD.match(word)) and named.end() < len(word) and is_secret(named[0].rstrip("+=: \t\n")):
        return f"{named[0]}{MASK}"
    return masked(_USER_OF_WORD.sub(rf"\1\2{MASK}@", word, count=1) if _USER_OF_WORD.match(word) else word)


def masked_command(words: Sequence[str]) -> str:
    """Return a command line for a shell, masked."""
    return shlex.join(masked_words(words))


def masked_values(value: object, name: str = "") -> object:
    """Return plain values with masks.  Numbers and booleans are not masked, because they are settings."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return _masked_mapping(value, name)
    if isinstance(value, list | tuple):
        return _masked_list(value, name)
    if is_secret(name):
        return MASK
    if isinstance(value, bytes):
        return _masked_word("", value.decode("latin-1")).encode("latin-1")
    return _masked_word("", value) if isinstance(value, str) else value


def _masked_mapping(values: Mapping[object, object], name: str) -> dict[object, object]:
    named = values.get("name", values.get("key"))  # {"name": "password", "value": "abc"}
    names = {key: str(key) for key in values}
    if isinstance(named, str) and is_secret(named) and "value" in names:
        names["value"] = named
    return {
        masked(key) if isinstance(key, str) else key: masked_values(held, name if is_secret(name) else names[key])
        for key, held in values.items()
    }


def _masked_list(values: Sequence[object], name: str) -> list[object]:
    if is_secret(name):
        return [masked_values(one, name) for one in values]
    before = ["", *(one if isinstance(one, str) and one.startswith("-") and "=" not in one else "" for one in values)]
    if len(values) == 2 and isinstance(values[0], str) and re.fullmatch(r"[\w.-]+", values[0]):  # [NAME, VALUE]
        before[1] = values[0]
    secrets = passwords_of([one if isinstance(one, str) else "" for one in values])
    return [
        _masked_word(option, one, secret)
        if isinstance(one, str) and (secret or option.startswith("-"))
        else masked_values(one, option)
        for option, one, secret in zip(before, values, secrets, strict=False)
    ]


def is_secret(name: str) -> bool:
    """Whether the name of an option, variable or key means that its value is secret."""
    if name.endswith(".py"):  # the name of a file of code, as in auth.py:release
        return False
    if name.lower() == "sig":  # sig=... is the signature of a signed URL; the option --sig means significance
        return True
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    parts = ["", *(part for part in re.split(r"[\W_]+", apart.lower()) if part), ""]
    for before, part, after in zip(parts, parts[1:], parts[2:], strict=False):
        if not _HARMLESS.isdisjoint((part, before + part, part + after)):
            continue
        if part in _SECRET_ALONE or part.endswith(_ENDINGS) or (part in ("key", "id") and before + part in _SECRET):
            return True
    return False
