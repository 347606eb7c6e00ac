"""Measure audits of programs and services: python benchmarks/programs.py [languages] [speed] [server]

languages: seconds and processor seconds of `dpaudit run` for one-shot programs with half the noise and with all of it,
and the time until a program without `one_shot` is recognised.  speed: 2,000 runs of a program of 5 ms.  server: six
services on this machine, with verdicts, requests, and the most requests in a second.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dpaudit import Pair, audit
from dpaudit.running import CommandMechanism, Service
from dpaudit.running.sampler import Sampler

PAIR = Pair([0, 0, 1], [0, 1, 1], "replace_one")
AWK = """\
BEGIN { srand(seed) }
{ gsub(/[^0-9.]/, " "); for (i = 1; i <= NF; i++) sum += $i }
END { u = rand() - 0.5; print sum - scale * (u < 0 ? -1 : 1) * log(1 - 2 * (u < 0 ? -u : u)) }
"""
NODE = """\
const [seed, scale] = process.argv.slice(2).map(Number);
let state = seed >>> 0;
const next = () => { state = (state + 0x6D2B79F5) >>> 0; let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61); return ((t ^ (t >>> 14)) >>> 0) / 4294967296; };
const data = JSON.parse(require("fs").readFileSync(0, "utf8")), u = next() - 0.5;
const noisy = data.reduce((a, b) => a + b) - scale * Math.sign(u) * Math.log(1 - 2 * Math.abs(u));
console.log(noisy.toFixed(6));  // the last bits would betray the sum
"""
BASH = """\
read -r data; sum=0; for x in ${data//[^0-9]/ }; do ((sum += x)); done
for sign in 1 -1; do while ((RANDOM % base == 0)); do ((sum += sign)); done; done; echo $sum
"""
JAVA = """\
public class Noise {
    public static void main(String[] words) throws Exception {
        double sum = 0, scale = Double.parseDouble(words[1]);
        for (String x : new String(System.in.readAllBytes()).replaceAll("[^0-9.]", " ").trim().split(" +"))
            sum += Double.parseDouble(x);
        double u = new java.util.Random(Long.parseLong(words[0])).nextDouble() - 0.5;
        System.out.printf("%.6f%n", sum - scale * Math.signum(u) * Math.log(1 - 2 * Math.abs(u)));
    }
}
"""
# for each language: file, code, command with {scale}, claim, half of the noise and all of it
LANGUAGES = {
    "mawk": ("noise.awk", AWK, ["mawk", "-v", "seed={seed}", "-v", "scale={scale}", "-f", "noise.awk"], 1, "0.5", "1"),
    "gawk": ("noise.awk", AWK, ["gawk", "-v", "seed={seed}", "-v", "scale={scale}", "-f", "noise.awk"], 1, "0.5", "1"),
    "node": ("noise.js", NODE, ["node", "noise.js", "{seed}", "{scale}"], 1, "0.5", "1"),
    "bash": ("noise.sh", BASH, ["bash", "-c", "RANDOM={seed} base={scale}; . ./noise.sh"], 0.6932, "4", "2"),
    "java": ("Noise.java", JAVA, ["java", "-Xshare:auto", "Noise", "{seed}", "{scale}"], 1, "0.5", "1"),
}


def languages() -> None:
    print("| language | noise | verdict | runs | seconds | processor seconds |\n|---|---|---|---|---|---|")
    for name, (file, code, command, epsilon, half, full) in LANGUAGES.items():
        if shutil.which(command[0]) is None:
            print(f"| {name} | not installed |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, file).write_text(code)
            if name == "java":
                subprocess.run(["javac", file], cwd=folder, check=True)
            for scale, noise, options in (
                (half, "half", ["--jobs", "2"]),
                (full, "all", ["--trials", "150", "--jobs", "2"]),
            ):
                words = [word.replace("{scale}", scale) for word in command]
                mechanism = {"command": words, "one_shot": True}
                shown = _run(folder, mechanism, epsilon, *options)
                print(f"| {name} | {noise} | {shown} |", flush=True)
            if name == "mawk":
                words = [word.replace("{seed}", "1").replace("{scale}", "1") for word in command]
                print(f"| {name} | without one_shot | {_run(folder, {'command': words}, epsilon)} |", flush=True)


def _run(folder: str, mechanism: dict[str, object], epsilon: float, *options: str) -> str:
    pairs = [{"d0": PAIR.d0, "d1": PAIR.d1}]
    config = {"name": "program", "claim": f"pure(epsilon={epsilon})", "mechanism": mechanism, "pairs": pairs}
    Path(folder, "c.yaml").write_text(json.dumps(config))
    words = [sys.executable, "-m", "dpaudit", "run", "c.yaml", "--no-pdf", "--quiet", "--format", "json", *options]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    (row,) = json.loads(done.stdout)
    verdict = row["verdict"] or "recognised: add one_shot: true"
    return f"{verdict} | {row.get('runs_per_dataset', '')} | {time.perf_counter() - began:.1f} | {used:.1f}"


def speed() -> None:
    """The program sleeps 3 ms, and takes about 5 ms with its start."""
    mechanism = CommandMechanism(["sh", "-c", "sleep 0.003; cat"], one_shot=True)
    for jobs in (1, 2):
        sampler = Sampler(mechanism, [PAIR], 1, jobs=jobs)
        sampler.block(0, 0, 20)
        before, began = _used(), time.perf_counter()
        sampler.block(0, 20, 1020)
        print(f"2,000 runs, jobs {jobs}: {time.perf_counter() - began:.1f} s, {_used() - before:.1f} processor seconds")


def _used() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def server() -> None:
    print("| service | verdict | runs | requests | most in a second | seconds |\n|---|---|---|---|---|---|")
    for kind in ("half the noise", "right noise", "cache", "503 at every fifth", "429 with Retry-After", "500 calls"):
        times, cache, rng = list[float](), dict[bytes, float](), random.Random(1)
        scale = 0.5 if kind == "half the noise" else 1.0

        class Handler(BaseHTTPRequestHandler):
            def do_POST(
                self, kind: str = kind, times: list[float] = times, cache: dict[bytes, float] = cache,
                rng: random.Random = rng, scale: float = scale,
            ) -> None:  # fmt: skip
                times.append(time.monotonic())
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = 503 if kind.startswith("503") and len(times) % 5 == 0 else 200
                status = 429 if kind.startswith("429") and len(times) % 60 == 0 else status
                status = 402 if kind == "500 calls" and len(times) > 500 else status
                value = sum(json.loads(body)) + rng.expovariate(1 / scale) * rng.choice([-1, 1])
                value = cache.setdefault(body, value) if kind == "cache" else value
                content = json.dumps({"value": value} if status == 200 else {"error": status}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                if status == 429:
                    self.send_header("Retry-After", "1")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=running.serve_forever, daemon=True).start()
        service = Service(url=f"http://127.0.0.1:{running.server_address[1]}/", output="value", rate=50)
        began = time.perf_counter()
        result = audit(service, "pure(epsilon=1)", PAIR, trials=400, seed=1)
        running.shutdown()
        most = max(sum(at <= other < at + 1 for other in times) for at in times)
        seconds = time.perf_counter() - began
        verdict = result.verdict.value
        print(f"| {kind} | {verdict} | {result.trials_used} | {len(times)} | {most} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    for part in sys.argv[1:] or ["languages", "speed", "server"]:
        {"languages": languages, "speed": speed, "server": server}[part]()
