"""Trees, classifiers and clusters of scikit-learn.  Each mechanism keeps epsilon 1 if NOISE is 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator
PUBLIC = np.linspace(0, 1, 16).reshape(-1, 1)
TREE = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(PUBLIC, np.arange(16) // 4 % 2)
CENTRES = np.sort(KMeans(2, n_init=1, random_state=0).fit(PUBLIC).cluster_centers_, axis=0)


def tree(dataset: list[tuple[float, int]], rng: Rng) -> Any:
    """Noisy counts of both classes in each leaf of a public tree, and the class of each public point."""
    leaves = TREE.apply(np.array([[x] for x, _ in dataset]))
    counts = np.zeros((TREE.tree_.node_count, 2))
    np.add.at(counts, (leaves, [label for _, label in dataset]), 1)
    counts += rng.laplace(scale=NOISE, size=counts.shape)
    return {"counts": counts, "classes": counts[TREE.apply(PUBLIC)].argmax(axis=1)}


def classifier(dataset: list[tuple[float, int]], rng: Rng) -> Any:
    """Output perturbation (Chaudhuri, Monteleoni & Sarwate 2011) of one weight, with penalty 1/2 and |x| <= 1."""
    x, y = np.array([[x] for x, _ in dataset]), [label for _, label in dataset]
    model = LogisticRegression(C=1 / (0.5 * len(y)), fit_intercept=False).fit(x, y)
    weight = model.coef_[0, 0] + rng.laplace(scale=NOISE * 2 / (len(y) * 0.5))
    return {"weight": float(weight), "classes": (weight * PUBLIC[:, 0] > 0).tolist()}


def clusters(dataset: list[float], rng: Rng) -> Any:
    """Noisy counts and sums of two clusters, whose public centres lie in [0, 1]."""
    x = np.array(dataset)
    nearest = np.abs(x[:, None] - CENTRES[:, 0]).argmin(axis=1)
    counts = np.bincount(nearest, minlength=2) + rng.laplace(scale=2 * NOISE, size=2)
    sums = np.bincount(nearest, weights=x, minlength=2) + rng.laplace(scale=2 * NOISE, size=2)
    return {"sizes": counts, "centres": sums / np.maximum(counts, 1)}
