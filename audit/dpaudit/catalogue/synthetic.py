"""Generators of synthetic tables: correct ones, and after them generators with one mistake each.

A dataset is a list of dicts, a dict of columns, or a data frame.  An output is a table as a dict of columns, whose
number of rows does not depend on the data unless the docstring says so; with `white_box`, it holds the noisy counts.

All claims are about one added or removed record, and about real numbers: the last bits of noisy counts reveal the
counts (Mironov 2012), so attacks on bits refute claims of outputs with `white_box`.  In the proofs, d is the number of
columns.  A record is in at most one cell of a marginal, so it changes at most one of its counts, by 1.  Drawing a table
from noisy counts is post-processing.

Stadler, Oprisanu & Troncoso 2022, and Annamalai, Ganev & De Cristofaro 2024 found the mistakes in released software.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.catalogue.promises import check_count, check_positive
from dpaudit.catalogue.synthetic_domain import Cells, Domain, Generator, TableOutput, columns_of, counts_of, drawn
from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction, compose
from dpaudit.numerics import AnyArray, Array
from dpaudit.values import Dataset

Measured = tuple[list[tuple[int, int]], Array, list[Array]]
"""The edges (parent, child) of a tree of columns, noisy counts of column 0, and noisy counts of each edge."""


@dataclass(frozen=True, kw_only=True)
class Marginals(Generator):
    """Independent columns: the counts of each column plus Lap(d / epsilon): epsilon-DP.

    Proof: A record changes one count of each of the d marginals by 1, so the L1 sensitivity of all counts is d.  The
    loss is exactly epsilon if the d noisy counts all lie outside the interval between their two true values, on one
    side.  Dwork, McSherry, Nissim & Smith 2006.
    """

    def generated(self, cells: Cells, domain: Domain, n: int, rng: np.random.Generator) -> Sequence[TableOutput]:
        scale, sizes = self.noise_scale(cells), domain.sizes
        noisy = [counts_of(cells, [j], sizes) + rng.laplace(0.0, scale, (n, size)) for j, size in enumerate(sizes)]
        if self.white_box:
            return [dict(zip(domain.columns, found, strict=True)) for found in zip(*noisy, strict=True)]
        places = [drawn(counts, rng.random((n, self.rows))) for counts in noisy]
        return domain.tables(np.stack(places, axis=2), rng)

    def noise_scale(self, cells: Cells) -> float:
        """Return the scale of the noise of each count, which is independent of the records."""
        return len(self.schema) / self.epsilon


@dataclass(frozen=True, kw_only=True)
class Histogram(Generator):
    """The counts of all cells of the table's domain plus Lap(1 / epsilon): epsilon-DP.

    Proof: A record is in one cell of the domain, so the L1 sensitivity of all counts is 1.  Dwork, McSherry, Nissim &
    Smith 2006.
    """

    def generated(self, cells: Cells, domain: Domain, n: int, rng: np.random.Generator) -> Sequence[TableOutput]:
        every = domain.every_cell()
        counts = counts_of(cells, range(len(domain.sizes)), domain.sizes).reshape(-1)
        noisy = counts + rng.laplace(0.0, 1 / self.epsilon, (n, len(every)))
        if self.white_box:
            return [{"counts": found} for found in noisy]
        return domain.tables(every[drawn(noisy, rng.random((n, self.rows)))], rng)


@dataclass(frozen=True, kw_only=True)
class Tree(Generator):
    """A tree of columns, whose edges are chosen in private, and noisy counts of its nodes and edges."""

    def generated(self, cells: Cells, domain: Domain, n: int, rng: np.random.Generator) -> Sequence[TableOutput]:
        uniform = rng.random((n, self.rows, len(domain.sizes)))
        outputs: list[AnyArray] = []
        described: list[TableOutput] = []
        for run in range(n):
            edges, root, joint = self.measured(cells, domain, rng)
            described.append(
                {"edges": tuple(f"{domain.columns[i]} to {domain.columns[j]}" for i, j in edges), "root": root}
                | {f"edge {number}": counts.reshape(-1) for number, counts in enumerate(joint)}
            )
            places = np.zeros(uniform[run].shape, dtype=np.intp)
            places[:, 0] = drawn(root[None], uniform[run, :, 0][None])[0]
            for (i, j), counts in zip(edges, joint, strict=True):  # a parent comes before its children
                places[:, j] = drawn(counts[places[:, i]], uniform[run, :, j][:, None])[:, 0]
            outputs.append(places)
        return described if self.white_box else domain.tables(np.array(outputs, dtype=np.intp), rng)

    def measured(self, cells: Cells, domain: Domain, rng: np.random.Generator) -> Measured:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class MstLike(Tree):
    """A maximum spanning tree with N(0, sigma^2) on counts: mu-GDP with mu = sqrt(2 d - 1) / sigma, and epsilon-DP.

    The claim composes both.  McKenna, Miklau & Sheldon 2021, "Winning the NIST contest".

    Proof: First, the counts of d columns get noise.  A record changes one count of each by 1, so their L2 sensitivity
    is sqrt(d).  Then d - 1 edges are chosen, each by the exponential mechanism with epsilon / (d - 1).  The score of an
    edge is the L1 distance of its counts from the counts under independence, which are computed from noisy counts.  A
    record changes one count of the edge by 1, so a score changes by at most 1, and the weights are exp(epsilon score /
    (2 (d - 1))).  Finally, the counts of d - 1 edges get noise; their L2 sensitivity is sqrt(d - 1).  Adaptive
    composition of Gaussian mechanisms adds up squares: mu^2 = (d + d - 1) / sigma^2.
    """

    epsilon: float = 0.5  # of the choice of the edges
    sigma: float = 3.0  # standard deviation of the noise of counts

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("sigma", self.sigma)

    @property
    def claim(self) -> TradeoffFunction:
        d = len(self.schema)
        gaussian = GaussianDP(math.sqrt(2 * d - 1) / self.sigma)
        return gaussian if d == 1 else compose(gaussian, PureDP(self.epsilon))

    def measured(self, cells: Cells, domain: Domain, rng: np.random.Generator) -> Measured:
        sizes, d = domain.sizes, len(domain.sizes)
        noisy = [counts_of(cells, [j], sizes) + rng.normal(0.0, self.sigma, sizes[j]) for j in range(d)]
        shares = [np.maximum(counts, 0.0) / max(1.0, float(np.maximum(counts, 0.0).sum())) for counts in noisy]
        total = max(1.0, float(np.mean([counts.sum() for counts in noisy])))

        def score(i: int, j: int) -> float:
            independent = total * np.outer(shares[i], shares[j])
            return float(np.abs(counts_of(cells, [i, j], sizes) - independent).sum())

        edges = _spanned(d, score, self.epsilon / max(1, d - 1) / 2, rng)
        joint = [counts_of(cells, edge, sizes) for edge in edges]
        return edges, noisy[0], [counts + rng.normal(0.0, self.sigma, counts.shape) for counts in joint]


@dataclass(frozen=True, kw_only=True)
class PrivBayesLike(Tree):
    """A Bayesian network with one parent for each column, and Lap(2 d / epsilon) on its counts: epsilon-DP.

    Zhang, Cormode, Procopiuc, Srivastava & Xiao 2017, "PrivBayes", with another score.

    Proof: One half of epsilon chooses d - 1 edges, each by the exponential mechanism with epsilon / (2 (d - 1)).  The
    score of an edge is the number of records whose child has the most frequent value among records with the same
    parent.  Adding a record raises every score by 0 or 1.  If all scores change in the same direction by at most 1,
    weights exp(epsilon' score) give an epsilon'-DP choice: the weight of an edge and the sum of all weights both change
    by a factor in [1, exp(epsilon')].  The other half of epsilon pays for the counts of column 0 and of d - 1 edges.  A
    record changes one count of each by 1, so their L1 sensitivity is d.
    """

    def measured(self, cells: Cells, domain: Domain, rng: np.random.Generator) -> Measured:
        sizes, d = domain.sizes, len(domain.sizes)

        def score(i: int, j: int) -> float:
            return float(counts_of(cells, [i, j], sizes).max(axis=1).sum())

        edges = _spanned(d, score, self.epsilon / 2 / max(1, d - 1), rng)
        scale = 2 * d / self.epsilon
        root, joint = counts_of(cells, [0], sizes), [counts_of(cells, edge, sizes) for edge in edges]
        noisy = [counts + rng.laplace(0.0, scale, counts.shape) for counts in joint]
        return edges, root + rng.laplace(0.0, scale, root.shape), noisy


@dataclass(frozen=True, kw_only=True)
class Rounds(Generator):
    """A model that improves in rounds: means of counts plus Lap(rounds d / epsilon) in each round: epsilon-DP.

    Each round appends its share of the rows, drawn from the mean of the noisy counts of all rounds so far.

    Proof: The L1 sensitivity of all counts of one round is d, so a round is (epsilon / rounds)-DP.  The number of
    rounds is public.
    """

    rounds: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("rounds", self.rounds)
        if self.rounds > self.rows:
            raise ValueError(f"rounds must be in 1..rows, got {self.rounds}")

    def generated(self, cells: Cells, domain: Domain, n: int, rng: np.random.Generator) -> Sequence[TableOutput]:
        sizes = domain.sizes
        counts = np.concatenate([counts_of(cells, [j], sizes) for j in range(len(sizes))])
        scale = self.rounds * len(sizes) / self.epsilon
        noisy = counts + rng.laplace(0.0, scale, (n, self.rounds, len(counts)))
        model = np.cumsum(noisy, axis=1) / np.arange(1, self.rounds + 1)[:, None]
        kept = self.rounds_made(counts, model, sizes)
        if self.white_box:
            return [{"counts": found[:made]} for found, made in zip(model, kept, strict=True)]
        each = self.rows // self.rounds
        ends = np.cumsum(sizes)[:-1]
        places = np.zeros((n, self.rounds * each, len(sizes)), dtype=np.intp)
        for number in range(self.rounds):
            rows = slice(number * each, (number + 1) * each)
            for j, part in enumerate(np.split(model[:, number], ends, axis=1)):
                places[:, rows, j] = drawn(part, rng.random((n, each)))
        tables = domain.tables(places, rng)
        return [
            {name: column[: each * made] for name, column in table.items()}
            for table, made in zip(tables, kept, strict=True)
        ]

    def rounds_made(self, counts: Array, model: Array, sizes: Sequence[int]) -> Sequence[int]:
        """Return the number of rounds of each run, which is the same for all datasets."""
        return [self.rounds] * len(model)


@dataclass(frozen=True, kw_only=True)
class PateLike(Generator):
    """Teachers that vote on random candidates, with Lap(candidates / epsilon) on votes: epsilon-DP.

    Each record belongs to one random teacher.  A teacher accepts a candidate if one of its records agrees with the
    candidate in all columns but one.  A candidate becomes a row if more than half of the teachers accept it, after
    noise.  Jordon, Yoon & van der Schaar 2019, "PATE-GAN".

    Proof: Let every record of the smaller dataset have the same teacher in both datasets.  Then one teacher has one
    record more, so the number of votes for each candidate changes by at most 1.  The L1 sensitivity of all votes is the
    number of candidates.  Candidates and the teachers of common records are independent of the additional record, so
    the inequality of epsilon-DP also holds on average over them.
    """

    teachers: int = 50
    candidates: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("teachers", self.teachers)
        check_count("candidates", self.candidates)

    def generated(self, cells: Cells, domain: Domain, n: int, rng: np.random.Generator) -> Sequence[TableOutput]:
        outputs: list[TableOutput] = []
        for _ in range(n):
            shown = np.column_stack([rng.integers(0, size, self.candidates) for size in domain.sizes])
            agree = (cells[:, None, :] == shown).sum(axis=2) >= max(1, len(domain.sizes) - 1)
            noisy = self.votes(agree, rng) + rng.laplace(0.0, self.candidates / self.epsilon, self.candidates)
            if self.white_box:
                outputs.append({"candidates": shown, "votes": noisy})
            else:
                outputs += domain.tables(shown[noisy > self.teachers / 2][None], rng)
        return outputs

    def votes(self, agree: AnyArray, rng: np.random.Generator) -> Array:
        teacher = rng.integers(0, self.teachers, len(agree))
        accepts = np.zeros((self.teachers, agree.shape[1]))
        np.maximum.at(accepts, teacher, agree.astype(np.float64))
        return np.asarray(accepts.sum(axis=0))


def _spanned(d: int, score: Any, factor: float, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Grow a tree from column 0; each edge (parent, child) has a probability proportional to exp(factor score)."""
    known = {(i, j): score(i, j) for i in range(d) for j in range(d) if i != j}
    edges: list[tuple[int, int]] = []
    inside = [0]
    while len(inside) < d:
        open_edges = [(i, j) for i in inside for j in range(d) if j not in inside]
        weights = factor * np.array([known[edge] for edge in open_edges])
        weights = np.exp(weights - weights.max())
        edges.append(open_edges[int(rng.choice(len(open_edges), p=weights / weights.sum()))])
        inside.append(edges[-1][1])
    return edges


class BoundsFromTable(Marginals, private=False):
    """Wrong: the cells of a column of numbers lie between those of the data; no epsilon.  Control: `Marginals`."""

    def domain_for(self, dataset: Dataset) -> Domain:
        public = self.domain
        bounds = [
            bound and _range(entries, bound)
            for entries, bound in zip(columns_of(dataset, public.columns), public.bounds, strict=True)
        ]
        return replace(public, bounds=tuple(bounds))


@dataclass(frozen=True, kw_only=True)
class DomainFromTable(Marginals, private=False):
    """Wrong: only the categories that occur in the data have counts; no epsilon.  Control: `Marginals`."""

    def domain_for(self, dataset: Dataset) -> Domain:
        public = self.domain
        categories = [
            tuple(name for name in names if name in entries) or names
            for entries, names in zip(columns_of(dataset, public.columns), public.categories, strict=True)
        ]
        return replace(public, categories=tuple(categories))


class NoiseForShares(Marginals, private=False):
    """Wrong: counts get the noise of shares, which are counts divided by the number of records n; no epsilon.

    The noise is too small by a factor of n, and its scale reveals n.  G. Ganev (ganevgv) reported the same mistake in
    conditional distributions as https://github.com/DataResponsibly/DataSynthesizer/issues/34.  Control: `Marginals`.
    """

    def noise_scale(self, cells: Cells) -> float:
        return super().noise_scale(cells) / max(1, len(cells))


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Rounds, private=False):
    """Wrong: the rounds end as soon as the model is near the data, measured without noise; no epsilon.

    The distance is the mean over columns of the total variation distance.  The number of rows shows the number of
    rounds.  Annamalai, Ganev & De Cristofaro 2024 describe early stopping in released software.  Control: `Rounds`.
    """

    tolerance: float = 0.5

    def rounds_made(self, counts: Array, model: Array, sizes: Sequence[int]) -> Sequence[int]:
        ends = np.cumsum(sizes)[:-1]
        start = np.concatenate([np.full((len(model), 1, len(counts)), 1.0), model], axis=1)
        apart = np.zeros(start.shape[:2])
        for true, parts in zip(np.split(counts, ends), np.split(start, ends, axis=2), strict=True):
            apart += np.abs(_shares(parts) - _shares(true)).sum(axis=2) / 2 / len(sizes) if true.sum() else 0.0
        near = apart <= self.tolerance
        near[:, -1] = True
        return [int(made) for made in near.argmax(axis=1)]


class SharedRecords(PateLike, private=False):
    """Wrong: all teachers see all records, so one record changes all votes; (teachers epsilon)-DP.

    Ganev, Annamalai & De Cristofaro 2024, "The elusive pursuit of reproducing PATE-GAN", found such teachers in
    released implementations.  Control: `PateLike`.
    """

    def votes(self, agree: AnyArray, rng: np.random.Generator) -> Array:
        return self.teachers * np.asarray(agree.any(axis=0), dtype=np.float64)


def _shares(counts: Array) -> Array:
    positive = np.maximum(counts, 0.0)
    total = positive.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0, positive / np.maximum(total, 1e-300), 1 / counts.shape[-1]))


def _range(entries: Sequence[object], public: tuple[float, float]) -> tuple[float, float]:
    known = [float(x) for x in entries if isinstance(x, int | float) and math.isfinite(x)]
    if not known:
        return public
    return min(known), max(min(known) + 1e-9, max(known))
