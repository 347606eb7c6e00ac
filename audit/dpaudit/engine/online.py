"""Audits of a stream of runs: the caller asks for a coin, runs the mechanism once, and passes the output on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.online_state import (
    FORMAT,
    MEMORY,
    PATH,
    OtherBets,
    check_bets,
    decoded,
    read_state,
    reference_wealth,
    saved,
)
from dpaudit.engine.plan import enough_trials, would_do
from dpaudit.engine.result_parts import Facts, attack_rows, detectable, provenance_of, ruling
from dpaudit.inference.grid import BINS, bin_of
from dpaudit.inference.power import largest_epsilon, largest_violation, least_detectable, power_margin
from dpaudit.inference.sequential.strategy import log_threshold, stream_strategy
from dpaudit.learning import STREAM, Learner
from dpaudit.learning.attack import Attack, resolve_attacks
from dpaudit.outputs import OutputError, Outputs
from dpaudit.result.atomic_write import write_whole
from dpaudit.result.base_evidence import Counts, check_bins, dense, peak_of, sparse
from dpaudit.result.evidence import OnlineEvidence, concluded
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Detectable, History, PairRow
from dpaudit.running.streams import fresh_seed, stream
from dpaudit.settings import DEFAULTS, POWER, check_confidence
from dpaudit.text import Reason, WarningCode


class OnlineAudit:
    """Evidence against a claim that grows as outputs come in.

    In each step, `coin()` returns the dataset to run the mechanism on, 0 or 1, and `update(output)` records the output.
    All other members may be read at any time; their guarantees hold for any stopping time.

    Theorem:
        If every step satisfies the claim given any past, the probability that `refuted` ever becomes true is at most 1
        - confidence.

    Proof:
        The past determines the score of a step, and its coin is fair.  So the e-value of each step has expectation at
        most 1 given the past (`inference.sequential.betting`, with one output per trial).  The product of these
        e-values is a nonnegative supermartingale, and Ville's inequality applies.

    Steps need not be independent: the mechanism may keep a state, drift and adapt to earlier outputs and coins.  It
    must learn the coin only through the dataset, so do not pass it `seed`.  Count every run exactly once.  A failed run
    also counts: pass a value that stands for the failure, such as None, and never repeat the run.

    Args:
        claim: The claim about each step, or its text.
        confidence: The probability that a true claim is ever refuted is at most 1 - confidence.
        attacks: "auto", the name of an attack, an `Attack`, or several of these.
        seed: Seed of the coins and the attacks; None draws a fresh seed.
    """

    def __init__(
        self,
        claim: TradeoffFunction | str,
        *,
        confidence: float = DEFAULTS.confidence,
        attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
        seed: int | None = DEFAULTS.seed,
    ) -> None:
        check_confidence(confidence)
        self.claim, self.confidence = claim_of("claim", claim), confidence
        self.seed = fresh_seed() if seed is None else seed
        self.steps = 0  # updates so far
        self._began = time.perf_counter()
        self._tested = self.claim.symmetrized()
        self._bets = stream_strategy(self._tested)
        self._log_prices = self._bets.log_prices(self._tested)
        self._counts = np.zeros((1, 2, BINS), dtype=np.int64)
        self._peak = self._counts.copy()  # the counts when the wealth was largest
        self._given = attacks
        self._learner = Learner(resolve_attacks(attacks), self.seed, 0, settings=STREAM)
        self._waiting: tuple[list[Any], list[Any]] = ([], [])  # outputs of d0 and d1, not yet learned from
        self._latest: list[tuple[int, Any]] = []  # dataset and output, for `to_json`
        self._coin: int | None = None
        self._broken = ""  # why scoring failed; the evidence is then void
        self._unreadable = 0  # outputs that counted as None
        self._path: list[tuple[int, float]] = []  # steps and log-wealth, thinned
        self._log_e = self._most = 0.0
        self._refuted_at: int | None = None

    def coin(self) -> int:
        """Return the dataset for the next run: 0 or 1.  Repeated calls before `update` return the same value."""
        if self._coin is None:
            self._coin = int(stream(self.seed, "online coin", self.steps).integers(2))
        return self._coin

    def update(self, output: Any) -> None:
        """Record the output of the run that the latest `coin()` asked for.

        Every step counts exactly once, for every output: never repeat a run.  An output that cannot be read counts as
        None.  If scoring an output raises an exception, the evidence of the whole stream becomes void.

        Raises:
            RuntimeError: If `coin` was not called first.
        """
        if self._coin is None:
            raise RuntimeError("update() takes the output of a run whose dataset coin() chose; call coin() first")
        side, self.steps, self._coin = self._coin, self.steps + 1, None  # the step counts even if it fails below
        before, self._broken = self._broken, self._broken or f"the output of step {self.steps} was not counted"
        try:
            read = Outputs.read([output])
        except OutputError:
            output, self._unreadable = None, self._unreadable + 1
            read = Outputs.read([None])
        if self._learner.ready:
            try:
                place = bin_of(self._learner.score(read))[0]
            except Exception as error:
                self._broken = before or f"the score of step {self.steps} failed ({type(error).__name__}: {error})"
                return
            self._counts[0, side, place] += 1
            self._log_e = self._log_wealth(self._counts)
        if self._log_e > self._most:
            self._most, self._peak = self._log_e, self._counts.copy()
        if self._refuted_at is None and self._most >= log_threshold(self.confidence):
            self._refuted_at = self.steps
        self._path.append((self.steps, self._log_e))
        if len(self._path) > 2 * PATH:  # keep half and the maximum
            peak = max(self._path, key=lambda look: look[1])
            self._path = [look for i, look in enumerate(self._path) if i % 2 == 0 or look == peak]
        self._remember(side, output)
        self._broken = before

    @property
    def refuted(self) -> bool:
        """Whether the claim has been refuted, now or earlier."""
        return self._refuted_at is not None and not self._void

    @property
    def refuted_at(self) -> int | None:
        """The step at which the claim was refuted; None if it was not refuted."""
        return self._refuted_at

    @property
    def log_e(self) -> float:
        """Log of the wealth against the claim now."""
        return self._log_e

    @property
    def mu_lower(self) -> float:
        """The certified bound: for every smaller mu, at least one step is not mu-GDP given its past."""
        return 0.0 if self._void else _evidence(self).lower(None, confidence=self.confidence)

    def result(self, *, name: str = "stream") -> AuditResult:
        """Return the result of the stream so far.  Its "runs per dataset" are half of the steps, rounded up."""
        return _result(self, name)

    def to_json(self, path: str | Path) -> None:
        """Save the stream, so that another process can continue it.

        Save after `update`, and before the next coin.  The file holds the latest outputs: 10,000 at most, and 128 MiB.
        If a process ends between `coin` and `to_json`, the output of its last run is lost.  After `from_json`, pass
        None to `update` for that step.  Do not repeat the run: repeated runs would select outputs, and the guarantee
        would not hold.

        Raises:
            ValueError: If a coin waits for its output, an output has no encoding, attacks were given as objects, or the
                score has failed.
        """
        if self._coin is not None:
            raise ValueError("a run is pending: call update() with its output, or None if it failed, and then save")
        if self._void:
            raise ValueError(f"the evidence of this stream is void, so it is not saved: {self._void}")
        names = [self._given] if isinstance(self._given, str) else self._given
        if not isinstance(names, Sequence) or not all(isinstance(one, str) for one in names):
            raise ValueError("a stream whose attacks are objects cannot be saved; name them, or use attacks='auto'")
        state = {
            "format": FORMAT,
            "claim": str(self.claim),
            "confidence": self.confidence,
            "attacks": self._given if isinstance(self._given, str) else list(names),
            "seed": self.seed,
            "steps": self.steps,
            "unreadable": self._unreadable,
            "bins": BINS,
            "bets": reference_wealth(self._bets, self._log_prices),
            "counts": sparse(self._counts[0]),
            "peak": sparse(self._peak[0]),
            "refuted_at": self._refuted_at,
            "path": self._path,
            "outputs": saved(self._latest),
        }
        write_whole(path, json.dumps(state) + "\n")

    @classmethod
    def from_json(cls, path: str | Path) -> OnlineAudit:
        """Continue a stream that `to_json` saved.

        The evidence is unchanged.  The score is refitted to the saved outputs.

        Raises:
            ValueError: If the file does not hold a saved stream, or this version of dpaudit would place different bets.
        """
        try:
            state = read_state(path)
            check_bins({"bins": state.bins})
            audit = cls(parse_claim(state.claim), confidence=state.confidence, attacks=state.attacks, seed=state.seed)
            check_bets(state.bets, reference_wealth(audit._bets, audit._log_prices))
            audit._counts = dense(state.counts)[None]
            audit._peak = peak_of([state.peak], audit._counts, coin_selected=True)
            for side, text in state.outputs:
                audit._remember(side, decoded(text))
        except OtherBets as error:
            raise ValueError(f"{path} cannot be continued: {error}") from None
        except (ValueError, ArithmeticError, OutputError) as error:
            raise ValueError(f"{path} is not a stream of dpaudit ({FORMAT}): {error}") from None
        audit.steps, audit._unreadable = state.steps, state.unreadable
        audit._log_e = audit._log_wealth(audit._counts) if audit._counts.any() else 0.0
        audit._most = max(0.0, audit._log_wealth(audit._peak)) if audit._peak.any() else 0.0
        audit._path = list(state.path)
        audit._refuted_at = state.refuted_at
        return audit

    @property
    def _void(self) -> str:
        """The reason why the evidence is void; empty if the evidence is valid."""
        return self._learner.void or self._broken

    def _log_wealth(self, counts: Counts) -> float:
        return self._bets.log_wealth(self._bets.gains(self._log_prices, counts, coin_selected=True))

    def _remember(self, side: int, output: Any) -> None:
        """Store an output.  When a fit is due, learn from equal numbers of outputs of d0 and d1."""
        self._latest.append((side, output))
        if len(self._latest) > 2 * MEMORY:
            del self._latest[:-MEMORY]
        self._waiting[side].append(output)
        n = min(map(len, self._waiting))
        if n == 0 or self._learner.trials + n < self._learner.next_fit:
            return
        block = self._learner.read(*(waiting[:n] for waiting in self._waiting))
        for waiting in self._waiting:
            del waiting[:n]
        if self._learner.ready:
            self._learner.score_fresh(*block)  # updates the weights of the attacks
        self._learner.learn(*block)


def _evidence(audit: OnlineAudit) -> OnlineEvidence:
    counts, peak = audit._counts.copy(), audit._peak.copy()
    return OnlineEvidence(target=audit._tested, counts=counts, peak=peak, steps=audit.steps)


def _result(audit: OnlineAudit, name: str) -> AuditResult:
    evidence, learner = _evidence(audit), audit._learner
    runs = math.ceil(audit.steps / 2)
    least = _detectable(audit, evidence)
    needed = enough_trials(
        audit._bets, audit._tested, largest_violation(audit.claim), confidence=audit.confidence, coin_selected=True
    )
    few = f"{audit.steps} steps are too few to see any violation of {audit.claim.label}"
    few += would_do(needed, "steps", revealing=True)
    notes: list[str] = [Reason(f"{audit.steps:,} steps; a fair coin chose the dataset of each", WarningCode.HARMLESS)]
    if audit._unreadable:
        notes.append(f"{audit._unreadable:,} outputs could not be read and counted as None")
    found = ruling(
        Facts(
            fixed=False,
            trials=runs,
            allowed=runs,
            refuted=audit.refuted,
            measured=True,
            void=bool(audit._void),
            dependent=(Reason(audit._void, WarningCode.VOID),) if audit._void else (),
            too_few="" if least.claim else Reason(few, WarningCode.TOO_FEW),
            notes=(*notes, *learner.warnings),
        )
    )
    path = [*audit._path[:-1][:: max(1, len(audit._path) // PATH)], *audit._path[-1:]]
    path = sorted({*path, *([max(audit._path, key=lambda look: look[1])] if audit._path else [])})
    return AuditResult(
        **concluded(evidence, audit.claim, confidence=audit.confidence, valid=found.bounds_valid, failed=False),
        name=name,
        verdict=found.verdict,
        trials_used=runs,
        trials_allowed=runs,
        stopped_by=found.stopped_by,
        refuted_at=None if audit.refuted_at is None else math.ceil(audit.refuted_at / 2),
        witness=None,
        detectable=least,
        history=History(
            trials=np.array([math.ceil(step / 2) for step, _ in path], dtype=np.int64),
            log_e=np.array([log_e for _, log_e in path], dtype=np.float64),
        ),
        pairs=(PairRow(label="stream", relation="unspecified", d0="d0", d1="d1", trials=runs, log_e=audit.log_e),),
        attacks=attack_rows([learner]),
        warnings=found.reasons,
        provenance=provenance_of(seed=audit.seed, mechanism=name),
        elapsed_s=time.perf_counter() - audit._began,
    )


def _detectable(audit: OnlineAudit, evidence: OnlineEvidence) -> Detectable:
    """Return the violations that this number of steps would have detected if all steps had the same law."""
    significance = 1 - audit.confidence
    each = partial(power_margin, audit._bets, audit._tested, significance=significance, power=POWER)
    margin = partial(each, trials=evidence.trials, coin_selected=True)
    least = least_detectable(audit._tested, margin) if evidence.trials else None
    largest = largest_epsilon(evidence.counts.sum() / 2, significance=significance)
    words = "at every step", "the attack is optimal"
    return detectable(least, *words, shown=evidence.trials, largest_epsilon=largest)
