"""Runs a service behind HTTP: one request is one run.  It waits where waiting helps, and sees the end of a budget."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import queue
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import numpy as np

from dpaudit.running.command import SMALL_SEEDS, as_json, read_special
from dpaudit.running.foreign import BudgetSpent, MechanismError, Status
from dpaudit.running.processes import TIMEOUT, quoted_start
from dpaudit.text import MAX_FILE_BYTES, __version__, masked, masked_values, shortened
from dpaudit.values import Dataset, Json, Output

UNREACHED, NO_ANSWER = 0, -1  # in place of a status
_AGAIN = {UNREACHED, NO_ANSWER, 408, 425, 429, 502, 503, 504}  # a later request may succeed
_QUOTA = 429
_SPENT = {402, 403}
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_SECRET_HEADER = re.compile(r"authori[sz]ation|cookie|key|token|secret", re.IGNORECASE)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0  # seconds; a pause is twice the last one, or longer if the service says so
_LONG = 5.0  # seconds of a pause that is announced
_log = logging.getLogger("dpaudit.running")
_free: dict[str, float] = {}  # host -> time of `time.monotonic` from which the next request keeps the rate


class _Answer(NamedTuple):
    """An answer, or the reason why there is none."""

    status: int
    words: str
    content: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def pause(self) -> float:
        """Seconds that the service asks to wait."""
        asked = (self.headers.get("Retry-After") or "").strip()
        with contextlib.suppress(ValueError):
            return float(asked) if asked.isdigit() else parsedate_to_datetime(asked).timestamp() - time.time()
        return 0.0

    @property
    def value(self) -> Any:
        """The content as JSON; raise ValueError if it is none."""
        return json.loads(self.content.decode("utf-8"), object_hook=read_special) if self.content.strip() else None


@dataclass(frozen=True, kw_only=True)
class Service:
    """A mechanism behind HTTP: each run sends one request with the dataset, and its output is the answer.

    In `url`, `headers` and `body`, `$NAME` stands for an environment variable, whose value no file records; secrets may
    be given in no other way.  The texts `{dataset}` and `{seed}` in `url`, and as whole texts in `body`, stand for the
    dataset as JSON and for a fresh seed.

    Requests are sent one at a time, by the process of the audit.  If the service is busy (429, 503), does not answer or
    closes the connection, the request is sent again after a pause, at least that of `Retry-After`.  402 and 403, 429
    for longer than `timeout`, and `budget` end the audit, whose verdict rests on the runs before.  This is valid if the
    end does not depend on outputs that the audit does not count, as that of a number of requests.

    Args:
        url: The address, with http:// or https://.
        method: The method; POST if there is a body, otherwise GET.
        headers: Headers of each request.
        body: The body, as a value of JSON; by default the dataset, unless it is in `url`.
        output: The path of the output in the JSON of an answer, such as "value" or "rows.0.count"; "" for all of it.
        rate: Maximum number of requests in a second.
        budget: Maximum number of requests, or the path of what is left of a budget in each answer: a number that
            reaches 0, or true when it is spent.
        timeout: Seconds for one run with all its pauses; a quarter of them for each request.

    Raises:
        ValueError: If an argument is not allowed, holds a secret, or if the dataset is sent nowhere.
    """

    url: str
    method: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json = None
    output: str = ""
    rate: float | None = None
    budget: int | str | None = None
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https:// and a host, got {masked(self.url)[:200]!r}")
        if self.body is None and "{dataset}" not in self.url:
            object.__setattr__(self, "body", "{dataset}")
        if "{dataset}" not in self.url and '"{dataset}"' not in json.dumps(self.body):
            raise ValueError('the dataset is sent nowhere; put "{dataset}" into body, as a whole text, or into url')
        if self.rate is not None and not self.rate > 0:
            raise ValueError(f"rate must be > 0 requests a second, got {self.rate}")
        if isinstance(self.budget, int) and self.budget < 1:
            raise ValueError(f"budget must be at least 1 request, got {self.budget}")
        if not self.timeout > 0:
            raise ValueError(f"timeout must be > 0 seconds, got {self.timeout}")
        body = _filled(self.body, lambda text: 0 if _VARIABLE.fullmatch(text) else text)
        url = _VARIABLE.sub("", self.url)
        secrets = {"url": masked(url) != url, "body": masked_values(body) != body}
        for name, value in self.headers.items():
            secrets[f"headers.{name}"] = bool(_SECRET_HEADER.search(name)) and not _VARIABLE.search(value)
        if found := [place for place, secret in secrets.items() if secret]:
            words = "results would record: write $NAME, the name of an environment variable, in its place"
            raise ValueError(f"{found[0]} holds a secret, which {words}")

    @property
    def address(self) -> str:
        """Method and URL."""
        return f"{self.method or ('GET' if self.body is None else 'POST')} {self.url}"

    def __call__(self, dataset: Dataset, rng: np.random.Generator) -> Output:
        """Return the output of one run."""
        request, pause = self._request(dataset, int(rng.integers(SMALL_SEEDS))), _FIRST_PAUSE
        deadline = time.monotonic() + self.timeout
        while (answer := self._asked(request)).status in _AGAIN:
            wait = max(pause, answer.pause)
            if answer.status == UNREACHED and "answered" not in self.__dict__:
                raise MechanismError(f"{self.address} {answer.words}")
            if time.monotonic() + wait > deadline:
                words = f"{self.address} {answer.words}, and waiting longer than timeout ({self.timeout:g} s) may help"
                raise BudgetSpent(words) if answer.status == _QUOTA else MechanismError(words)
            if wait >= _LONG:
                _log.info("%s %s; the next request follows in %.0f s", self.address, answer.words, wait)
            if answer.status != _QUOTA:
                self.__dict__["repeated"] = self.repeated + 1
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)
        output = self._output(answer)
        self.__dict__["answered"] = True
        return output

    @property
    def variables(self) -> list[str]:
        """The environment variables whose values requests hold."""
        return list(dict.fromkeys(_VARIABLE.findall(json.dumps([self.url, *self.headers.values(), self.body]))))

    @property
    def repeated(self) -> int:
        """Number of requests so far that had no answer and were repeated, except those beyond a quota."""
        return int(self.__dict__.get("repeated", 0))

    def _request(self, dataset: Dataset, seed: int) -> urllib.request.Request:
        try:
            sent = as_json(dataset)
        except TypeError as error:
            raise MechanismError(f"the dataset cannot be sent to {self.address}: {error}") from None
        words = {"{dataset}": sent, "{seed}": seed}
        body = _filled(self.body, lambda text: words[text] if text in words else _with_variables(text, whole=True))
        url = _with_variables(self.url)
        for word, value in words.items():
            url = url.replace(word, quote(json.dumps(value), safe=""))
        headers = {"User-Agent": f"dpaudit/{__version__}", "Accept": "application/json"}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        headers |= {name: _with_variables(value) for name, value in self.headers.items()}
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.Request(url, data, headers, method=self.address.split()[0])

    def _asked(self, request: urllib.request.Request) -> _Answer:
        """Send one request, as early as rate and budget allow, in a thread that cannot hold up the audit."""
        about, timeout = self.__dict__, self.timeout / 4
        if isinstance(self.budget, int) and about.get("sent", 0) >= self.budget:
            raise BudgetSpent(f"{self.budget:,} requests were sent, as many as budget allows")
        if "spent" in about:
            raise BudgetSpent(about["spent"])
        if self.rate is not None:
            time.sleep(max(0.0, _free.get(request.host, 0.0) - time.monotonic()))
            _free[request.host] = time.monotonic() + 1 / self.rate
        about["sent"] = about.get("sent", 0) + 1
        answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        threading.Thread(target=lambda: answers.put(_sent(request, timeout)), daemon=True).start()
        try:
            return answers.get(timeout=timeout)
        except queue.Empty:
            return _Answer(NO_ANSWER, f"did not answer within {timeout:g} s")

    def _output(self, answer: _Answer) -> Output:
        """Return the output in an answer; raise the reason why there is none."""
        status, began = answer.status, f"the answer began with {quoted_start(answer.content)}"
        words, value = f"{self.address} {answer.words}", None
        try:
            value = answer.value
        except (ValueError, RecursionError):
            if status < 300:
                kind = answer.headers.get("Content-Type") or "no Content-Type"
                raise MechanismError(f"{words}, but with {kind} in place of JSON; {began}") from None
        if isinstance(self.budget, str):
            left, missing = _at(value, self.budget)
            if missing and status < 300:
                raise MechanismError(f"{words}, but the path of budget {missing}; {began}")
            if left is True or (isinstance(left, int | float) and left <= 0 and left is not False):
                self.__dict__["spent"] = f"{self.address} states in {self.budget} that the budget is spent"
        if status in _SPENT or (status >= 300 and "spent" in self.__dict__):
            raise BudgetSpent(f"{words}; {began}")
        if 300 <= status < 400:
            to = answer.headers.get("Location") or "nowhere"
            raise MechanismError(f"{words} and leads to {masked(to)}: write that address in url")
        if status == 401:
            raise MechanismError(f"{words}: check headers and the variables they name; {began}")
        if status >= 400:
            error = Status(f"HTTP status {status}")
            error.add_note(f" ({words}; {began})")
            raise error
        found, missing = _at(value, self.output)
        if missing and "spent" in self.__dict__:
            raise BudgetSpent(self.__dict__["spent"])
        if missing:
            raise MechanismError(f"{words}, but the path of output {missing}; {began}")
        return found


class _Direct(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, which would change the method of a request, and lead datasets elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_Direct)


def _sent(request: urllib.request.Request, timeout: float) -> _Answer:
    """Send a request, and return the answer, or in words why there is none."""
    try:
        try:
            reply: Any = _opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            content, status = reply.read(MAX_FILE_BYTES + 1), int(reply.status)
            if len(content) > MAX_FILE_BYTES:
                return _Answer(UNREACHED, f"answered with more than {MAX_FILE_BYTES:,} bytes")
            return _Answer(status, f"answered {status} {reply.reason or ''}".strip(), content, reply.headers)
    except Exception as error:  # of the network, or of an address that no client accepts
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            return _Answer(NO_ANSWER, f"did not answer within {timeout:g} s")
        if isinstance(reason, ConnectionResetError | http.client.HTTPException):
            return _Answer(UNREACHED, f"closed the connection without a whole answer ({reason})")
        return _Answer(UNREACHED, f"cannot be reached: {getattr(reason, 'strerror', None) or reason}")


def _filled(value: Any, of_text: Callable[[str], Any]) -> Any:
    """Replace each text in a value of JSON."""
    if isinstance(value, dict):
        return {key: _filled(part, of_text) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, of_text) for part in value]
    return of_text(value) if isinstance(value, str) else value


def _with_variables(text: str, *, whole: bool = False) -> str:
    """Replace `$NAME` by the value of the environment variable; if `whole`, only in a text that is nothing else."""

    def value(found: re.Match[str]) -> str:
        try:
            return os.environ[found[1]]
        except KeyError:
            raise MechanismError(f"the service needs the environment variable {found[1]}, which is not set") from None

    return _VARIABLE.sub(value, text) if not whole or _VARIABLE.fullmatch(text) else text


def _at(value: Any, path: str) -> tuple[Any, str]:
    """Return the part of a value at a path such as `rows.0.count`, or None and why there is none."""
    for part in path.split(".") if path else ():
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            keys = (
                f"the keys are {', '.join(map(str, value))}" if isinstance(value, dict) else f"{value!r:.80} is there"
            )
            return None, f"({path}) has no {part}: {shortened(keys)}"
    return value, ""
