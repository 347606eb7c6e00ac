"""The keys of a config, their types, and the rules for combining them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from dpaudit.catalogue import BUILTIN
from dpaudit.claims import parse_claim
from dpaudit.config.pair_models import Number, PairConfig, Strict, Whole, number, numeric_arguments, whole
from dpaudit.learning.attack import resolve_attacks
from dpaudit.libraries.configured import GENERATORS, LIBRARIES, LibraryCall, check_config, file_beside
from dpaudit.running.command import CommandMechanism
from dpaudit.running.processes import TIMEOUT
from dpaudit.running.requirements import check_version, project_name
from dpaudit.running.service import Service
from dpaudit.running.worker import is_standard
from dpaudit.settings import (
    CERTAIN,
    DEFAULTS,
    IMPOSSIBLE,
    MAX_TRIALS,
    MIN_TRIALS,
    NO_TIME,
    Confirm,
    Failures,
    Method,
    check_confirm,
    check_memory,
)
from dpaudit.text import hint, nearest
from dpaudit.values import JsonObject

FROM_MECHANISM = "from mechanism"  # value of `claim` that selects the claim in the mechanism's attribute `claim`
REPORTED = "reported"  # value of `claim` that tests what interactive sessions report to have spent


KINDS = ("python", "command", "builtin", "library", "http", "sql")  # a mechanism has exactly one of these keys


def _as_text(value: object) -> object:
    """Return the text of a whole number, which a path of one part may be."""
    return str(value) if type(value) is int else value


def builtin_mechanism(name: str, params: JsonObject | None) -> Any:
    """Create a builtin mechanism.  Parameters that are numbers may be text such as log(3)."""
    if name not in BUILTIN:
        meant = hint(name, BUILTIN, f"builtin must be one of {', '.join(BUILTIN)}")
        raise ValueError(f"unknown builtin mechanism {name[:100]!r}; {meant}  `dpaudit list mechanisms` lists all")
    known = inspect.signature(BUILTIN[name]).parameters
    given = dict(params or {})
    for key, value in given.items():
        if key not in known:
            allowed = f"allowed are {', '.join(known)}" if known else "it has no parameters"
            raise ValueError(f"params: {name} has no parameter {key}; {hint(key, known, allowed)}")
        if known[key].annotation in ("int", "float"):
            given[key] = number(whole(value))
            if not isinstance(given[key], int | float):
                raise ValueError(f"params: {key} must be a number such as 0.5, 1/3 or log(3), got {value!r:.80}")
    try:
        return BUILTIN[name](**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"params do not fit builtin {name}: {error}") from None


class ServiceConfig(Strict):
    """A service behind HTTP; `$NAME` in url, headers and body stands for an environment variable."""

    url: str = Field(description="address; {dataset} and {seed} in it are replaced")
    method: str = Field("", description="POST if there is a body, otherwise GET")
    headers: dict[str, str] = Field({}, description='such as {Authorization: "Bearer $TOKEN"}')
    body: Any = Field(None, description='JSON, in which the texts "{dataset}" and "{seed}" are replaced; the dataset')
    output: Annotated[str, BeforeValidator(_as_text)] = Field(
        "", description="path of the output in the JSON answer, such as value or rows.0.count; all of it if omitted"
    )
    rate: Number | None = Field(None, gt=0, description="maximum number of requests in a second")
    budget: Annotated[int | str | None, BeforeValidator(whole)] = Field(
        None, description="maximum number of requests, or the path of what is left of a budget in each answer"
    )

    @model_validator(mode="after")
    def _fits(self) -> ServiceConfig:
        self.service(TIMEOUT)
        return self

    def service(self, timeout: float) -> Service:
        return Service(**self.model_dump(), timeout=timeout)


class DatabaseConfig(Strict):
    """A query on tables that hold the dataset, over a connection of Python's DB-API."""

    connect: str = Field(
        description="package.module:function or file.py:function that returns a connection; it may take the run's rng"
    )
    prepare: list[str] = Field(
        min_length=1,
        description="statements before the query; one with {dataset} in place of the values of a row is executed "
        "for each row, as in INSERT INTO people VALUES ({dataset})",
    )
    query: str = Field(description="each run is one query, and its output are the rows; {seed} is a fresh seed")

    @model_validator(mode="after")
    def _fits(self) -> DatabaseConfig:
        if ":" not in self.connect:
            raise ValueError(f"connect must read package.module:function or file.py:function, got {self.connect!r:.80}")
        if not any("{dataset}" in statement for statement in self.prepare):
            raise ValueError("prepare must have a statement such as INSERT INTO people VALUES ({dataset})")
        return self


class MechanismConfig(Strict):
    """The mechanism to audit: exactly one of `python`, `command`, `builtin`, `library`, `http` and `sql`."""

    python: str | None = Field(
        None, description="package.module:object, or path/to/file.py:object relative to the config"
    )
    command: list[str] | None = Field(
        None, min_length=1, description="a program and its arguments, run in the folder of the config"
    )
    one_shot: bool = Field(
        False,
        description="each run starts the program, which reads the dataset as JSON from stdin, or from the file "
        "{dataset} or {dataset.csv} that an argument names, and prints its output; {seed} is a fresh seed",
    )
    builtin: str | None = Field(None, description="a mechanism that `dpaudit list mechanisms` shows")
    http: ServiceConfig | None = Field(None, description="a service: each run is one request")
    sql: DatabaseConfig | None = Field(None, description="a database: each run is one query")
    library: str | None = Field(
        None, description=f"one of {', '.join(LIBRARIES)}; `call` makes the mechanism, its claim and its pairs"
    )
    call: str | None = Field(None, description="function or class of the library, such as make_laplace")
    arguments: JsonObject | list[Any] | None = Field(None, description="arguments of the call")
    d_in: int | float | list[float] = Field(1, description="distance of neighbouring datasets, for opendp")
    params: JsonObject | None = Field(
        None, description="arguments; if given, the object is a factory, which is called once with them"
    )
    batched: bool = Field(False, description="the mechanism takes (dataset, n, rng) and returns n outputs")
    observe_time: bool = Field(DEFAULTS.observe_time, description="the attacker also sees the running time of each run")
    requires: list[str] | None = Field(
        None, description="packages to install; `python` then runs in an environment with only these packages"
    )
    python_version: Annotated[str, AfterValidator(check_version)] | None = Field(
        None, description='Python version of this environment, e.g. "3.11"'
    )
    interpreter: str | None = Field(
        None,
        description="path of a Python whose packages `python` uses, such as .venv/bin/python; nothing is installed",
    )

    @field_validator("requires")
    @classmethod
    def _requirements(cls, requires: list[str] | None) -> list[str] | None:
        for requirement in requires or []:
            project_name(requirement)
        return requires

    @model_validator(mode="after")
    def _one_of(self) -> MechanismConfig:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"must have exactly one of the keys {', '.join(KINDS)}")
        self._check_library()
        if is_standard(module := self.address.rpartition(":")[0]):
            key = "sql.connect" if self.sql else "python"
            raise ValueError(
                f"{key} must not name a module of Python's standard library, got {module}, which could run params and "
                "datasets as code; put the mechanism into a separate file, FILE.py:OBJECT"
            )
        if self.python is None and self.library is None and self.sql is None and self.isolated:
            raise ValueError("requires, python_version and interpreter are allowed with python, library and sql only")
        if self.interpreter is not None and self.installs:
            raise ValueError("interpreter names a Python with its packages; remove requires and python_version")
        if self.command is not None and (self.params is not None or self.batched):
            raise ValueError("params and batched are not allowed with command; put arguments in the command itself")
        if (self.http or self.sql) and (self.params is not None or self.batched or self.observe_time):
            raise ValueError("params, batched and observe_time are not allowed with http and sql")
        if self.command is not None:
            CommandMechanism(self.command, one_shot=self.one_shot)
        elif self.one_shot:
            raise ValueError("one_shot is allowed with command only")
        if self.builtin is not None:
            builtin_mechanism(self.builtin, self.params)
        return self

    def _check_library(self) -> None:
        given = {"call", "arguments", "d_in"} & self.model_fields_set
        if self.library is None:
            if given:
                raise ValueError(f"{', '.join(sorted(given))}: allowed with library only")
            return
        if self.library not in LIBRARIES:
            otherwise = f"library must be one of {', '.join(LIBRARIES)}"
            raise ValueError(f"unknown library {self.library[:100]!r}; {hint(self.library, LIBRARIES, otherwise)}")
        if self.call is None:
            raise ValueError("call is missing: name the function or the class of the library, such as make_laplace")
        if self.params is not None or self.batched or self.observe_time:
            raise ValueError("params, batched and observe_time are not allowed with library; use arguments")
        arguments = numeric_arguments(self.arguments)
        if self.library == GENERATORS:
            check_config(self.call, arguments)

    @property
    def address(self) -> str:
        """The address of the user's code: of a Python mechanism, or of the function that connects to a database."""
        return self.python or (self.sql.connect if self.sql else "")

    @property
    def installs(self) -> bool:
        """Whether an environment is built."""
        return self.requires is not None or self.python_version is not None

    @property
    def isolated(self) -> bool:
        """Whether the mechanism runs in another Python."""
        return self.installs or self.interpreter is not None

    def library_call(self, folder: Path | None = None, *, raises: bool = False) -> LibraryCall | None:
        """Return the call of a library that makes the mechanism; None for other mechanisms."""
        if self.library is None or self.call is None:
            return None
        arguments, beside = numeric_arguments(self.arguments), ""
        if self.library == GENERATORS and folder is not None and file_beside(self.call, folder):
            beside = str(folder.absolute())
        raises = raises and self.library == GENERATORS
        return LibraryCall(
            library=self.library, call=self.call, arguments=arguments, d_in=self.d_in, beside=beside, raises=raises
        )


class AuditConfig(Strict):
    """One audit of a config file.  `dpaudit schema` prints the fields with their descriptions."""

    name: str = Field(description="name of the audit; its results are written to NAME.json and NAME.pdf")
    source: str = Field("", description="source of the claim, e.g. a URL")
    claim: str = Field(
        description=f'a claim such as "gaussian(mu=1)", or "{FROM_MECHANISM}"; for sessions, also "{REPORTED}"'
    )
    interactive: bool = Field(
        False, description="the mechanism opens sessions that answer queries; see audit_interactive"
    )
    queries: list[Any] | None = Field(
        None, min_length=1, description="queries of interactive sessions; the session's own if omitted"
    )
    mechanism: MechanismConfig
    pairs: list[PairConfig] = Field(min_length=1)
    attacks: str | list[str] = DEFAULTS.attacks
    trials: Whole = Field(
        DEFAULTS.trials,
        ge=MIN_TRIALS,
        le=MAX_TRIALS,
        description="maximum number of runs per dataset; 1e5 is read as 100000",
    )
    confidence: Number = Field(
        DEFAULTS.confidence,
        gt=IMPOSSIBLE,
        lt=CERTAIN,
        description="a true claim is reported as violated with probability at most 1 - confidence",
    )
    method: Method = Field(
        DEFAULTS.method, description="sequential stops at the first proof, and fixed tests once after all runs"
    )
    measure: bool = Field(
        DEFAULTS.measure,
        description="continue up to `trials` after a refutation, to measure how large the violation is",
    )
    confirm: Annotated[Confirm, BeforeValidator(whole)] = Field(
        DEFAULTS.confirm,
        description="number of fresh runs after a refutation, or never; at least 1000 if omitted",
    )
    seed: Whole | None = Field(
        DEFAULTS.seed, description="seed of the audit and of the mechanism's rng; random if omitted"
    )
    detect: str | None = Field(
        DEFAULTS.detect,
        description="a violation, stated as a claim, to find with fewer runs; an audit that finds none and could not "
        "have detected this one is inconclusive",
    )
    timeout: Number = Field(
        TIMEOUT,
        gt=NO_TIME,
        description="seconds to wait for an answer of a command or environment; if given, also of a python mechanism",
    )
    memory: Annotated[int | str | None, BeforeValidator(whole)] = Field(
        DEFAULTS.memory,
        description='maximum memory of each process that runs the mechanism, such as "2 GB" or "512 MB"; Linux only',
    )
    failures: Failures = Field(
        DEFAULTS.failures,
        description="what a run that raises does: stop the audit, count as an outcome that the analyst sees, or be "
        "retried as a fault of the machine",
    )
    expect: Literal["violation", "no violation"] | None = Field(
        None, description="the expected verdict; a result that differs is marked, with the same exit code"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_library(cls, values: Any) -> Any:
        """Add the claim and the pairs of a library's object if they are not given."""
        mechanism = values.get("mechanism") if isinstance(values, dict) else None
        if not isinstance(mechanism, dict) or mechanism.get("library") is None:
            return values
        return {"claim": FROM_MECHANISM, "pairs": [{"from_library": True}], **values}

    @field_validator("name")
    @classmethod
    def _file_name(cls, name: str) -> str:
        if not re.fullmatch(r"\w[\w .+-]{0,99}", name):
            raise ValueError(
                f"must be a file name of at most 100 letters, digits, spaces and . _ + -, got {name[:90]!r}"
            )
        return name

    @field_validator("memory", mode="before")
    @classmethod
    def _amount(cls, memory: object) -> int | None:
        try:
            return check_memory(whole(memory), name="")
        except TypeError as error:
            raise ValueError(str(error)) from None

    @field_validator("confirm", mode="before")
    @classmethod
    def _fresh_runs(cls, confirm: object) -> Confirm:
        return None if confirm is None else check_confirm(whole(confirm), name="")

    @field_validator("claim", "detect")
    @classmethod
    def _a_claim(cls, text: str | None) -> str | None:
        if text is not None and text != FROM_MECHANISM:
            if "(" not in text and nearest(text, [FROM_MECHANISM]):
                raise ValueError(f"{text!r} is not a claim; did you mean {FROM_MECHANISM}?")
            parse_claim(text)
        return text

    @model_validator(mode="after")
    def _sessions(self) -> AuditConfig:
        if not self.interactive:
            if self.queries is not None or self.claim.strip() in (REPORTED, f"{REPORTED}()"):
                raise ValueError(f"queries, and the claim {REPORTED}, are about sessions; add interactive: true")
            return self
        if self.mechanism.python is None or self.mechanism.isolated or self.mechanism.batched:
            raise ValueError("interactive is allowed with mechanism.python only, in this process and not batched")
        if self.mechanism.observe_time or self.detect is not None or any(pair.search for pair in self.pairs):
            raise ValueError("interactive cannot be combined with observe_time, detect or pairs.search; remove them")
        return self

    @field_validator("attacks")
    @classmethod
    def _known(cls, attacks: str | list[str]) -> str | list[str]:
        resolve_attacks(attacks)
        return attacks

    @model_validator(mode="after")
    def _fits_together(self) -> AuditConfig:
        if self.memory is not None and (self.mechanism.builtin or self.mechanism.http):
            raise ValueError("memory is allowed with mechanism.python and mechanism.command only; remove it")
        if self.memory is not None and self.mechanism.observe_time:
            raise ValueError("memory cannot be combined with mechanism.observe_time; remove one of them")
        elsewhere = self.mechanism.command is not None or self.mechanism.isolated
        if elsewhere and self.mechanism.observe_time and self.failures != "stop":
            raise ValueError(
                "failures must be stop with mechanism.observe_time and a command or an environment, as a new process "
                f"after a failure is slower; got {self.failures}"
            )
        if self.mechanism.library is None and any(pair.from_library for pair in self.pairs):
            raise ValueError("pairs: from_library is allowed with mechanism.library only")
        silent = [kind for kind in ("command", "http", "sql") if getattr(self.mechanism, kind) is not None]
        if self.claim == FROM_MECHANISM and silent:
            raise ValueError(
                f'claim: "{FROM_MECHANISM}" is not allowed with mechanism.{silent[0]}; state the claim here'
            )
        return self


def schema() -> JsonObject:
    """Return the JSON Schema of a config file, for editors."""
    audit = AuditConfig.model_json_schema(ref_template="#/$defs/{model}")
    definitions = audit.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpaudit config",
        "$defs": {**definitions, "AuditConfig": audit},
        "anyOf": [
            {"$ref": "#/$defs/AuditConfig"},
            {
                "type": "object",
                "properties": {"audits": {"type": "array", "items": {"$ref": "#/$defs/AuditConfig"}, "minItems": 1}},
                "required": ["audits"],
                "additionalProperties": False,
            },
        ],
    }
