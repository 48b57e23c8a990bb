"""Scores of an embedding, computed from arrays: linear probe, clustering, and label-free geometry."""

from ssge.evaluation.clustering import ClusterScore, KMeansClusters, cluster, kmeans
from ssge.evaluation.geometry import (
    effective_rank,
    geometry,
    spectrum,
    uniformity,
    wasserstein_to_gaussian,
)
from ssge.evaluation.probe import AdamProbe, LbfgsProbe, Probe, ProbeScore, linear_probe, linear_probes
from ssge.evaluation.scores import mean_std

__all__ = [
    "AdamProbe",
    "ClusterScore",
    "KMeansClusters",
    "LbfgsProbe",
    "Probe",
    "ProbeScore",
    "cluster",
    "effective_rank",
    "geometry",
    "kmeans",
    "linear_probe",
    "linear_probes",
    "mean_std",
    "spectrum",
    "uniformity",
    "wasserstein_to_gaussian",
]
