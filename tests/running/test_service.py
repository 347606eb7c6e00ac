"""Services behind HTTP: verdicts, pauses, rates, budgets and secrets, with a server in this process."""

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from dpaudit import AuditResult, MechanismError, Pair, PureDP, Verdict, audit
from dpaudit.running import Service, service
from dpaudit.running.foreign import BudgetSpent, Status

Answer = tuple[int, Any, dict[str, str]]


class Server:
    """Answers with the sum of the numbers and Laplace noise, unless `behave` answers for it."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.scale = 1.0
        self.behave: Callable[[int], Answer] = self.honest
        self._random, outer = random.Random(5), self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.times.append(time.monotonic())
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                try:
                    status, value, headers = outer.behave(len(outer.times))
                except ConnectionError:
                    return  # closes the connection
                content = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in ({"Content-Length": str(len(content))} | headers).items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/sum"

    def honest(self, _: int = 0) -> Answer:
        (numbers,) = [json.loads(body)["data"] for *_, body in self.requests[-1:]]
        noise = self._random.expovariate(1 / self.scale) * self._random.choice([-1, 1])
        return 200, {"result": [{"value": sum(numbers) + noise}], "left": 500 - len(self.times)}, {}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(service, "_FIRST_PAUSE", 0.001)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    yield running
    running.close()


def asking(server: Server, **options: Any) -> Service:
    return Service(url=server.url, **{"body": {"data": "{dataset}"}, "output": "result.0.value", **options})


def once(mechanism: Service, dataset: object = (1, 2)) -> object:
    return mechanism(dataset, np.random.default_rng(0))


def audited(mechanism: Service, **options: Any) -> AuditResult:
    settings: dict[str, Any] = {"trials": 300, "seed": 0, "confidence": 0.95, "attacks": "median_clipped", **options}
    return audit(mechanism, PureDP(1.0), Pair([0, 0, 1], [0, 1, 1]), **settings)


def busy(status: int, every: int, **headers: str) -> Callable[[Server], Callable[[int], Answer]]:
    return lambda server: (
        lambda n: server.honest() if n % every else (status, {}, {k.replace("_", "-"): v for k, v in headers.items()})
    )


@pytest.mark.parametrize("behaviour", [busy(503, 5), busy(429, 20, Retry_After="0"), busy(504, 7)])
def test_a_busy_service_gets_the_verdict_of_its_answers(server: Server, behaviour: Any) -> None:
    """The server draws from a fixed seed."""
    server.behave = behaviour(server)
    right = audited(asking(server))
    assert (right.verdict, right.trials_used) == (Verdict.NO_VIOLATION, 300)
    server.scale = 0.4
    assert audited(asking(server)).verdict is Verdict.VIOLATION


def test_repeated_requests_are_counted_by_dataset(server: Server) -> None:
    server.behave = busy(503, 5)(server)
    assert any("requests with d0 and" in warning for warning in audited(asking(server), trials=50).warnings)
    server.behave = server.honest
    assert not any("requests with d0" in warning for warning in audited(asking(server), trials=50).warnings)


def test_a_cache_of_the_service_is_no_violation(server: Server) -> None:
    cache: dict[bytes, Answer] = {}
    server.behave = lambda _: cache.setdefault(server.requests[-1][3], server.honest())
    result = audited(asking(server))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "caches off" in result.warnings[-1]


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({}, lambda server, n: (402, {"error": "pay"}, {})),
        ({}, lambda server, n: (403, b"<html>", {})),
        ({"timeout": 60.0}, lambda server, n: (429, {}, {"Retry-After": "86400"})),
        ({"budget": 400}, lambda server, n: server.honest()),
        ({"budget": "left"}, lambda server, n: (200, {"left": 0}, {})),
        ({"budget": "gone"}, lambda server, n: (409, {"gone": True}, {})),
    ],
)
def test_the_end_of_a_budget_leaves_a_verdict(server: Server, options: dict[str, Any], end: Any) -> None:
    def behave(n: int) -> Answer:
        status, value, headers = server.honest() if n <= 400 else end(server, n)
        return status, {"gone": False, **value} if isinstance(value, dict) else value, headers

    server.behave = behave
    result = audited(asking(server, **options))
    assert result.verdict is Verdict.NO_VIOLATION
    assert 180 <= result.trials_used <= 200
    assert result.stopped_by == "trials"
    assert any("the verdict rests on" in warning for warning in result.warnings)


def test_a_fixed_number_of_runs_is_not_tested_after_the_end_of_a_budget(server: Server) -> None:
    result = audited(asking(server, budget=100), method="fixed")
    assert (result.verdict, result.stopped_by) == (Verdict.INCONCLUSIVE, "failure")


def test_a_budget_that_reaches_zero_with_an_output_counts_this_output(server: Server) -> None:
    server.behave = lambda n: (200, {"result": [{"value": n}], "left": 3 - n}, {})
    mechanism = asking(server, budget="left")
    assert [once(mechanism) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(BudgetSpent, match="left"):
        once(mechanism)
    assert len(server.times) == 3


@pytest.mark.chance
def test_requests_never_exceed_the_rate(server: Server) -> None:
    """Of two audits together.  The tolerance of 5 ms is for the way of a request, not for the pauses."""
    mechanisms = [asking(server, rate=100.0), asking(server, rate=100.0)]
    for n in range(130):
        once(mechanisms[n % 2])
    spans = [server.times[n + 100] - server.times[n] for n in range(30)]
    assert min(spans) > 0.995


@pytest.mark.chance
def test_a_pause_is_as_long_as_the_service_asks(server: Server) -> None:
    server.behave = lambda n: (503, {}, {"Retry-After": "1"}) if n == 1 else server.honest()
    once(asking(server))
    assert server.times[1] - server.times[0] > 0.99


def test_url_headers_and_body_hold_dataset_seed_and_variables(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    server.behave = lambda n: (200, n, {})
    body = {"data": ["{dataset}", "{seed}", "$TOKEN", "no $TOKEN {dataset}"], "n": 1}
    once(asking(server, body=body, output="", headers={"Authorization": "Bearer $TOKEN"}), "$TOKEN")
    once(Service(url=f"{server.url}?q={{dataset}}&key=$TOKEN"), ["a b"])
    (post, get) = server.requests
    sent = json.loads(post[3])["data"]
    assert (post[0], sent[0], sent[2:]) == ("POST", "$TOKEN", ["hunter2", "no $TOKEN {dataset}"])
    assert isinstance(sent[1], int)
    assert post[2]["Authorization"] == "Bearer hunter2"
    assert get[:2] == ("GET", "/sum?q=%5B%22a%20b%22%5D&key=hunter2")
    monkeypatch.delenv("TOKEN")
    with pytest.raises(MechanismError, match="environment variable TOKEN, which is not set"):
        once(Service(url=f"{server.url}?q={{dataset}}&key=$TOKEN"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((302, {}, {"Location": "https://elsewhere.example/x"}), "leads to https://elsewhere.example/x: write that"),
        ((200, b"<!doctype html>", {"Content-Type": "text/html"}), "with text/html in place of JSON; .*doctype"),
        ((200, {"results": [1]}, {}), r"the path of output \(result.0.value\) has no result: the keys are results"),
        ((200, {"result": 7}, {}), "has no 0: 7 is there"),
        ((401, {}, {}), "401 Unauthorized: check headers"),
        ((403, {"no": "key"}, {}), "answered 403 Forbidden; the answer began with .*no"),
        ((500, {"oh": "no"}, {}), "HTTP status 500 .*oh"),
        ((200, b"x" * 70_000, {}), "closed the connection|more than 60,000 bytes"),
    ],
)
def test_each_wrong_answer_is_named_in_one_sentence(
    server: Server, answer: Answer, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_FILE_BYTES", 60_000)
    server.behave = lambda n: answer
    with pytest.raises(MechanismError, match=message) as error:
        audited(asking(server))
    assert "\n" not in str(error.value)


def test_a_status_may_be_the_outcome(server: Server) -> None:
    server.behave = lambda n: (500, {}, {}) if b"[0, 1, 1]" in server.requests[-1][3] else server.honest()
    assert audited(asking(server), failures="outcome").verdict is Verdict.VIOLATION
    with pytest.raises(Status, match="HTTP status 500"):
        once(asking(server), [0, 1, 1])


@pytest.mark.chance
def test_a_service_that_hangs_closes_or_is_absent_ends_within_its_limit(server: Server) -> None:
    def closes(_: int) -> Answer:
        raise ConnectionError

    server.behave = closes
    with pytest.raises(MechanismError, match="closed the connection without a whole answer"):
        once(asking(server))

    def hangs(_: int) -> Answer:
        time.sleep(3)
        return server.honest()

    server.behave = hangs
    began = time.monotonic()
    with pytest.raises(MechanismError, match=r"did not answer within 0\.1 s"):
        once(asking(server, timeout=0.4))
    assert time.monotonic() - began < 2
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(MechanismError, match="cannot be reached: Connection refused"):
            once(Service(url=f"http://127.0.0.1:{free.getsockname()[1]}/"))


@pytest.mark.chance
def test_a_service_that_was_away_for_a_while_is_asked_again(server: Server) -> None:
    mechanism = asking(server)
    once(mechanism)

    def away(n: int) -> Answer:
        if n < 4:
            raise ConnectionError
        return server.honest()

    server.behave = away
    assert isinstance(once(mechanism), float)
    assert mechanism.repeated == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"url": "ftp://x.example"}, "url must begin with http:// or https://"),
        ({"url": "http://x.example", "body": {"q": "SELECT {dataset}"}}, "the dataset is sent nowhere"),
        (
            {"url": "http://x.example", "headers": {"Authorization": "Bearer abc"}},
            "headers.Authorization holds a secret",
        ),
        ({"url": "http://me:pw@x.example"}, "url holds a secret"),
        ({"url": "http://x.example?api_key=abc"}, "url holds a secret"),
        ({"url": "http://x.example", "body": {"data": "{dataset}", "password": "abc"}}, "body holds a secret"),
        ({"url": "http://x.example", "rate": 0.0}, "rate must be > 0"),
        ({"url": "http://x.example", "budget": 0}, "budget must be at least 1"),
    ],
)
def test_wrong_keys_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Service(**keys)
    Service(url="http://x.example?api_key=$KEY", body={"d": "{dataset}", "password": "$PW"}, headers={"X-Key": "$K"})


CONFIG = """\
name: service
claim: pure(epsilon=1)
mechanism:
  http: {{url: "{url}", body: {{data: "{{dataset}}"}}, output: result.0.value, headers: {{X-Api-Key: $KEY}}}}
pairs: [{{d0: [0, 0, 1], d1: [0, 1, 1]}}]
"""


def test_a_config_names_a_service(
    server: Server, tmp_path: Any, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "hunter2")
    (tmp_path / "s.yaml").write_text(CONFIG.format(url=server.url))
    server.scale = 0.4
    assert command("run", "s.yaml", "--no-pdf", "--seed", "1", "--confidence", "0.9").exit_code == 1
    assert "hunter2" not in (tmp_path / "dpaudit-results" / "service.json").read_text()
    shown = command("run", "s.yaml", "--dry-run").output
    assert "which gets the datasets and the environment variables KEY" in shown.replace("\n", " ")
    assert command("run", "s.yaml", "--no-code").exit_code == 2
    (tmp_path / "s.yaml").write_text(CONFIG.format(url=server.url).replace("$KEY", "abc"))
    refused = command("run", "s.yaml", "--no-pdf")
    assert refused.exit_code == 2
    assert "s.yaml:4: mechanism.http" in refused.output
