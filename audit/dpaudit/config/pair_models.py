"""The keys of a config that describe pairs of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from dpaudit.config.dataset_files import CHANGES, Reader, changed, check_change, in_words, is_file
from dpaudit.config.numbers import Number, Whole
from dpaudit.pairs.pair import Pair, Relation, check_relation
from dpaudit.pairs.records import bounds_or_list
from dpaudit.pairs.search import Moves, SearchPairs
from dpaudit.values import Dataset, Foreign, Record

_CHECKED_SIZE = 10  # number of records for the check of a search; mistakes in a search do not depend on this number


class Strict(BaseModel):
    """A part of a config: unknown keys and values of a wrong type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchConfig(Strict):
    """Candidate pairs, the most revealing pairs first; see `dpaudit.SearchPairs`."""

    relation: Moves
    size: Whole = Field(
        10, ge=1, le=100_000, description="number of records in the larger dataset, or of values in the vector"
    )
    bounds: tuple[Number, Number] | None = Field(None, strict=False, description="smallest and largest value")
    step: Number | None = Field(None, gt=0, description="maximum change of a value in a vector")
    whole: bool = Field(False, description="use only whole numbers")
    columns: dict[str, list[Record]] | None = Field(
        None,
        alias="schema",
        description="records are rows of a table: for each column [low, high] or a list of categories",
    )
    out_of_domain: bool | None = Field(None, description="also try values beyond the bounds, NaN and None")
    tiny: bool = Field(
        False,
        description="use tables of two to ten rows, with a new category, an extreme value or a row far from all others",
    )
    most: Whole | None = Field(
        None, ge=1, le=1_000, description="maximum number of pairs; default 4 for relation all_values, otherwise 12"
    )
    seed: Whole = 0

    @model_validator(mode="after")
    def _fits(self) -> SearchConfig:
        list(SearchPairs(**self._settings | {"size": min(self.size, _CHECKED_SIZE)}))
        return self

    @property
    def _settings(self) -> dict[str, Foreign]:
        return {**self.model_dump(exclude={"columns"}), "schema": self._columns}

    @property
    def _columns(self) -> dict[str, Sequence[Record]] | None:
        """The schema with bounds as tuples, because YAML has only lists: two numbers are bounds."""
        if self.columns is None:
            return None
        return {name: bounds_or_list(values) for name, values in self.columns.items()}

    def pairs(self) -> list[Pair]:
        """Return the pairs, in order."""
        return list(SearchPairs(**self._settings))


class PairConfig(Strict):
    """Two neighbouring datasets, the pairs of a `search`, or the pairs of a library's object.

    A dataset is a YAML value, or the name of a .csv or .json file.
    """

    d0: Dataset = Field(None, description="a dataset, or the name of a .csv or .json file beside the config")
    d1: Dataset = Field(
        None,
        description="a dataset or a file; if d0 is a file, also {drop: 17}, {replace: {17: ...}} or {add: ...}",
    )
    relation: Relation = "unspecified"
    label: str = ""
    search: SearchConfig | None = None
    _digests: dict[str, str] = PrivateAttr(default_factory=dict)
    from_library: Literal[True] | None = Field(
        None, description="use the pairs that dpaudit generates for the object of `mechanism.library`"
    )

    @model_validator(mode="after")
    def _one_of(self) -> PairConfig:
        given = self.model_fields_set
        if "search" in given and len(given) > 1:
            raise ValueError("search must be the only key of its entry, without d0, d1, relation and label")
        if "from_library" in given and len(given) > 1:
            raise ValueError("from_library must be the only key of its entry")
        if missing := {"d0", "d1"} - given if not given & {"search", "from_library"} else set():
            raise ValueError(f"must have d0 and d1, or search; {' and '.join(sorted(missing))} is missing")
        if is_file(self.d0) and not is_file(self.d1):
            check_change(self.d1)
        if not (self.files or self.search or self.from_library):
            check_relation(Pair(self.d0, self.d1, self.relation))
        return self

    @property
    def files(self) -> list[str]:
        """The names of files with datasets."""
        return [dataset for dataset in (self.d0, self.d1) if is_file(dataset)]

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each file when it was last read."""
        return dict(self._digests)

    def _read(self, name: str, read: Reader) -> Dataset:
        dataset, self._digests[name] = read(name)
        return dataset

    def pairs(self, read: Reader) -> list[Pair]:
        """Return the pair, or the pairs of the search.  `PlannedAudit.pairs` reads the pairs of a library."""
        if self.from_library:
            return []
        if self.search is not None:
            return self.search.pairs()
        if not self.files:
            return [Pair(self.d0, self.d1, self.relation, self.label)]
        d0 = self._read(self.d0, read) if is_file(self.d0) else self.d0
        relation, label = self.relation, self.label
        if is_file(self.d1):
            d1 = self._read(self.d1, read)
        else:
            if "relation" not in self.model_fields_set:
                relation = CHANGES[check_change(self.d1)]
            d1, label = changed(d0, self.d1, self.d0), label or in_words(self.d0, self.d1)
        pair = Pair(d0, d1, relation, label)
        check_relation(pair)
        return [pair]
