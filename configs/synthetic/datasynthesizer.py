"""DataSynthesizer's correlated attribute mode (PrivBayes) on tables of a city and an age.

The library writes its progress to stdout.
"""

import contextlib
import io
import os
import tempfile
import warnings

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator


class Correlated:
    """A synthetic table of 50 rows; the claim is the epsilon given to `DataDescriber`."""

    def __init__(self, epsilon, rows=50):
        self._epsilon, self._rows = epsilon, rows
        self.claim = f"pure(epsilon={epsilon!r})"

    def __call__(self, dataset, rng):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            data, description = (os.path.join(folder, name) for name in ("data.csv", "description.json"))
            pd.DataFrame(dataset).to_csv(data, index=False)
            describer = DataDescriber(category_threshold=20, histogram_bins=4)
            describer.describe_dataset_in_correlated_attribute_mode(
                data,
                k=1,
                epsilon=self._epsilon,
                attribute_to_is_categorical={"city": True, "age": False},
                attribute_to_is_candidate_key={"city": False, "age": False},
                seed=int(rng.integers(2**31)),
            )
            describer.save_dataset_description_to_file(description)
            generator = DataGenerator()
            generator.generate_dataset_in_correlated_attribute_mode(
                self._rows, description, seed=int(rng.integers(2**31))
            )
            return {name: generator.synthetic_dataset[name].tolist() for name in ("city", "age")}
