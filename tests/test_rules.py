"""Rules of code and tests: no test fails by chance, and no module reads English that another one has written."""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import dpaudit

TESTS = Path(__file__).parent
FILES = {
    path.relative_to(TESTS).as_posix(): path
    for path in sorted(TESTS.rglob("*.py"))
    if "example" not in path.parts and path.name != "unseeded.py"
}

AUDITS = {"audit", "replay", "assert_private", "audit_unseeded", "audit_one_run"}
SEEDED_ANYWAY = {"audit_unseeded"}  # this function sets a seed and a high confidence
GLOBAL_DRAWS = {
    "choice", "exponential", "integers", "laplace", "normal", "permutation", "poisson", "rand", "randint", "randn",
    "random", "random_sample", "shuffle", "standard_normal", "uniform",
}  # fmt: skip
PYTHON_DRAWS = GLOBAL_DRAWS | {"gauss", "randrange", "random", "sample", "choices", "getrandbits"}
CLOCKS = {"perf_counter", "monotonic", "time_ns", "perf_counter_ns", "monotonic_ns", "process_time", "setitimer"}
PATIENT = 60  # seconds; a busy machine may exceed a shorter timeout
INSIDE = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))"  # parentheses of a call
SUSPECT = re.compile(  # files and statements without one of these need not be parsed or walked
    r"default_rng\(\)|RandomState|SeedSequence|SystemRandom|urandom|fresh_seed|secrets\.|timeout=|unseeded|CONFIDENCE|"
    rf"\brandom\.(?!Generator|default_rng\(\w)|\b(audit|replay|assert_private)\((?!{INSIDE}*?\b(seed=|\*\*))|"
    + "|".join(CLOCKS)
)
UNSEEDED = {"audit_unseeded", "unseeded_generator", "CONFIDENCE", "CONFIDENCE_OPTION"}

# Places where a forbidden call is allowed, and the reason why no outcome depends on this call.
JUSTIFIED = {
    ("engine/test_shared_datasets.py", "legacy"): "every audit seeds the global state that it draws from",
    ("typed/optional_members.py", "called"): "is read by mypy and never runs",
    ("test_checks.py", "legacy"): "every audit seeds the global state that it draws from",
    ("libraries/test_configured.py", "drawn"): "every audit seeds the global state that it draws from",
    ("engine/test_foreign_attacks.py", "test_attacks_leave_the_global_random_state_as_it_was"): "is seeded there",
    ("test_store.py", "test_a_resumed_audit_has_the_warnings_of_an_uninterrupted_one"): "the audit seeds it",
    ("test_side_effects.py", "test_global_random_state_is_reported"): "asserts warnings only",
    ("test_identity.py", "Noise"): "fingerprints leave out the state of generators",
    (
        "test_replay.py",
        "test_a_replay_in_a_test_compares_the_claim_and_the_violation_to_detect",
    ): "the session gives the seed",
    ("test_settings.py", "test_audits_without_a_seed_record_different_seeds"): "compares the seeds only",
}


@cache
def _functions(file: Path) -> list[tuple[str, list[ast.AST], bool]]:
    """Return the name of each top-level statement, its parts, and whether it has the mark `chance`."""
    found: list[tuple[str, list[ast.AST], bool]] = []
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body if SUSPECT.search(text) else ():
        walked = ast.walk(node) if SUSPECT.search("\n".join(lines[node.lineno - 1 : node.end_lineno])) else ()
        marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
        parts: list[ast.AST] = [part for part in walked if isinstance(part, ast.Call | ast.Name | ast.Attribute)]
        found.append((getattr(node, "name", "the module"), parts, any("mark.chance" in mark for mark in marks)))
    return found


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{_dotted(node.value)}.{node.attr}"
    return ""


def _unseeded_calls(parts: Iterable[ast.AST]) -> Iterator[str]:
    for call in parts:
        if not isinstance(call, ast.Call):
            continue
        name, last = _dotted(call.func), _dotted(call.func).rsplit(".", 1)[-1]
        if last in {"default_rng", "RandomState", "SeedSequence"} and not call.args and not call.keywords:
            yield f"{name}() without a seed"
        if last in {"SystemRandom", "urandom", "fresh_seed"} or name.startswith("secrets."):
            yield name
        if name == "random.Random" and not call.args:
            yield "random.Random() without a seed"
        if name == f"np.random.{last}" and last in GLOBAL_DRAWS:
            yield name
        if name == f"random.{last}" and last in PYTHON_DRAWS:
            yield name
        named = {keyword.arg for keyword in call.keywords}
        if name in AUDITS - SEEDED_ANYWAY - {"audit_one_run"} and not named & {"seed", None}:
            yield f"{name}(...) without seed="


def _impatient(parts: Iterable[ast.AST]) -> Iterator[str]:
    for call in parts:
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            limit = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg == "timeout" and isinstance(limit, int | float) and limit < PATIENT:
                yield f"timeout={limit}"


def test_randomness_in_tests_has_a_seed() -> None:
    """Unseeded randomness comes only from `tests/unseeded.py`, whose audits have a very high confidence."""
    found = [
        f"{where} {name}: {words}"
        for where, file in FILES.items()
        for name, parts, _ in _functions(file)
        for words in _unseeded_calls(parts)
        if (where, name) not in JUSTIFIED
    ]
    assert not found, "\n".join([*found, "give a seed, or use tests/unseeded.py and mark the test `chance`"])


def test_tests_with_a_clock_or_unseeded_randomness_are_marked() -> None:
    """`benchmarks/flaky.py` finds them by the mark `chance`."""
    found = []
    for where, file in FILES.items():
        for name, parts, marked in _functions(file):
            used = {_dotted(part).rsplit(".", 1)[-1] for part in parts} & (CLOCKS | UNSEEDED)
            used |= set(_impatient(parts))
            if name.startswith("test_") and used and not marked:
                found.append(f"{where} {name} uses {', '.join(sorted(used))}: mark it with @pytest.mark.chance")
    assert not found, "\n".join(found)


def test_exceptions_are_still_there() -> None:
    for where, name in JUSTIFIED:
        assert name in [found for found, _, _ in _functions(TESTS / where)], f"{where}: {name} is gone"


@pytest.mark.parametrize("code", ["audit(f, c, p, seed=1, timeout=2.0)", "run(words, timeout=59)"])
def test_a_short_timeout_is_noticed(code: str) -> None:
    assert list(_impatient(ast.walk(ast.parse(code))))
    assert not list(_impatient(ast.walk(ast.parse(code.replace("59", "60").replace("2.0", "None")))))


@pytest.mark.parametrize(
    "code",
    [
        "np.random.default_rng()",
        "default_rng()",
        "random.SystemRandom()",
        "os.urandom(4)",
        "secrets.randbelow(3)",
        "np.random.normal()",
        "random.gauss(0, 1)",
        "audit(f, c, p)",
        "replay(result, f, p, trials=3)",
        "assert_private(f, c, p)",
    ],
)
def test_unseeded_randomness_is_noticed(code: str) -> None:
    assert list(_unseeded_calls(ast.walk(ast.parse(code))))
    seeded = ast.parse("audit(f, c, p, seed=1); np.random.default_rng(3); rng.normal()")
    assert not list(_unseeded_calls(ast.walk(seeded)))


ROOT = Path(__file__).resolve().parent.parent
READS = ("startswith", "endswith", "partition", "rpartition", "split", "rsplit", "removeprefix", "removesuffix", "find")
PATTERNS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
ENGLISH = re.compile("[A-Za-z]{3,}:? | [A-Za-z]{3,}")
FOR_PEOPLE = re.compile(r"(warning|reason|failure|region|query|note|sentence|assumption|summary)s?|\w+_words")
"""Names of texts that dpaudit writes for people."""

ALLOWED = {
    "audit/dpaudit/cli/app.py": "a message of typer",
    "audit/dpaudit/libraries/sessions.py": "messages of OpenDP",
    "audit/dpaudit/libraries/smartnoise_sql.py": "queries in SQL",
    "audit/dpaudit/running/environments.py": "lock files",
    "audit/dpaudit/running/requirements.py": "messages and settings of uv and pip",
    "audit/dpaudit/running/sources.py": "requirements of packages",
    "audit/dpaudit/result/files.py": "messages of pydantic",
    "reports/dpaudit_reports/formats.py": "tracebacks of Python",
    "reports/dpaudit_reports/pdf.py": "messages of typst",
}
"""Modules that take such text apart, and what they read: foreign text, or a syntax that users write."""


def literals(node: ast.AST, known: Mapping[str, str]) -> str:
    """Return the texts in an expression, one on each line; `known` holds those of constants."""
    found = []
    for one in ast.walk(node):
        match one:
            case ast.Constant(value=str(text)):
                found.append(text)
            case ast.Name(id=name):
                found.append(known.get(name, ""))
    return "\n".join(found)


def constants(tree: ast.Module) -> dict[str, str]:
    names = [line for line in tree.body if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)]
    return {ast.unparse(line.targets[0]): literals(line.value, {}) for line in names}


def read_text(node: ast.AST) -> tuple[ast.expr, list[ast.expr]] | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=how), args=[pattern, *given]) if how in PATTERNS:
            return given[-1], [pattern]
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as pattern, attr=how), args=given) if (
            how in PATTERNS and name.isupper()
        ):
            return given[-1], [pattern]
        case ast.Call(func=ast.Attribute(value=text, attr=how), args=given) if how in READS:
            return text, given
        case ast.Compare(left=ast.Constant(value=str()) as sought, ops=[ast.In() | ast.NotIn()], comparators=[text]):
            return text, [sought]
    return None


def name_of(text: ast.expr) -> str:
    """Return the last name in an expression, such as "reason" for `result.reason.strip()[0]`."""
    match text:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner, attr="strip" | "lower")):
            return name_of(inner)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return name_of(inner)
        case ast.Call(func=function):
            return name_of(function)
    return ""


def offences(trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield each module and expression that looks for English words, or takes apart a text for people."""
    own = {file: constants(tree) for file, tree in trees.items()}
    shared = {name: text for known in own.values() for name, text in known.items() if not name.startswith("_")}
    for file, tree in trees.items():
        known = shared | own[file]
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and (found := read_text(node)):
                text, sought = found
                words = "\n".join(literals(one, known) for one in sought)
                if FOR_PEOPLE.fullmatch(name_of(text)) or any(map(ENGLISH.search, words.split("\n"))):
                    yield file, f"{file}:{node.lineno}: {ast.unparse(node)}"


def test_no_module_reads_what_dpaudit_wrote_for_people() -> None:
    files = [file for part in ("audit", "attacks", "reports") for file in sorted((ROOT / part).rglob("*.py"))]
    found = list(offences({str(file.relative_to(ROOT)): ast.parse(file.read_text("utf-8")) for file in files}))
    assert [words for file, words in found if file not in ALLOWED] == []
    assert ALLOWED.keys() - dict(found).keys() == set(), "these modules need no exception"


@pytest.mark.parametrize(
    "line",
    [
        "'the pair was dropped' in warning",
        "MARK.fullmatch(text)",
        "re.sub(r'^calling .*? raised', '', text)",
        "text.removeprefix(PREFIX)",
        "result.witness.region.strip().endswith('0')",
        "str(reason)[1:].partition(':')",
        "certified_words(result).split()",
    ],
)
def test_the_test_sees(line: str) -> None:
    tree = ast.parse(f"MARK = re.compile('(.+) is missing')\nPREFIX = 'not used: '\n{line}")
    assert len(list(offences({"m.py": tree}))) == 1
    assert not list(offences({"m.py": ast.parse("path.startswith('--resume=') or 'name' in fields or text.split()")}))


# --- the names in docstrings exist

NAMED = re.compile(r"`(?:dpaudit\.)?([a-z]\w*(?:\.\w+)+)`")
PACKAGES = {path.stem for path in (ROOT / "audit" / "dpaudit").iterdir() if not path.stem.startswith("_")}
GONE = {"mechanisms", "sampling"}  # packages of earlier versions


def test_modules_that_docstrings_and_pages_name_exist() -> None:
    """A name in backticks that begins with a package of dpaudit is that of a module, or of something in it."""
    missing = []
    files = [path for folder in ("audit", "attacks", "reports") for path in (ROOT / folder).rglob("*.py")]
    for file in [*files, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for name in NAMED.findall(file.read_text(encoding="utf-8")):
            first, *rest = name.split(".")
            if first not in PACKAGES | GONE or rest[-1] in {"md", "py"} or hasattr(dpaudit.AuditResult, rest[0]):
                continue  # `result.plot` is a method of a result
            place: object = dpaudit
            for number, part in enumerate([first, *rest]):
                try:
                    place = importlib.import_module("dpaudit." + ".".join([first, *rest][: number + 1]))
                except ModuleNotFoundError:
                    place = getattr(place, part, None) or getattr(place, "__annotations__", {}).get(part)
                if place is None:
                    missing.append(f"{file.relative_to(ROOT)}: {name}")
                    break
    assert not missing, "\n".join(missing)
