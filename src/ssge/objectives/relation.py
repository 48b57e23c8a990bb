r"""Relations: the similarities of a node to other nodes should be equal in the online and the target network.

With unit rows q_i of the predictions, t_i of the target vectors (constants), a set of other nodes S_i and a
temperature for each side, the relations of a node are distributions over S_i,

- p_i = softmax over j in S_i of t_i't_j / tau_t
- r_i = softmax over j in S_i of q_i't_j / tau_q

and the loss is the mean over nodes of KL(p_i || r_i) = sum_j p_ij (log p_ij - log r_ij). It is 0 if both sides agree
with equal temperatures. The vectors themselves may change as long as the relations do not.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def anchored_relation(q: Tensor, t: Tensor, anchors: Tensor, tau_q: float, tau_t: float) -> Tensor:
    """Return the mean KL divergence of the relations to the same anchors for all nodes.

    Parameters
    ----------
    q, t
        Predictions and targets, n x d; their norms are ignored.
    anchors
        Positions of the s nodes in S.
    tau_q, tau_t
        Temperatures of the predictions' and of the targets' relations.

    Notes
    -----
    Cost O(n s d) time, O(n s) memory.
    """
    t = functional.normalize(t.detach())
    others = t[anchors].t()
    return _divergence(t @ others / tau_t, functional.normalize(q) @ others / tau_q, dim=1) / q.shape[0]


def local_relation(q: Tensor, t: Tensor, near: Tensor, tau_q: float, tau_t: float) -> Tensor:
    """Return the mean KL divergence of each node's relations to its own neighbors, over nodes that have any.

    Parameters
    ----------
    q, t
        Predictions and targets, n x d; their norms are ignored.
    near
        Positions of the neighbors, n x k, padded with -1.
    tau_q, tau_t
        Temperatures of the predictions' and of the targets' relations.

    Notes
    -----
    Cost O(n k d) time; O(n d) memory, because neighbors are processed one rank at a time.
    """
    t, q = functional.normalize(t.detach()), functional.normalize(q)
    missing = near < 0
    columns = near.clamp_min(0).unbind(1)

    def relations(rows: Tensor, temperature: float) -> Tensor:
        found = torch.stack([(rows * t[column]).sum(1) for column in columns], 1) / temperature
        return found.masked_fill(missing, torch.finfo(found.dtype).min)

    kept = ~missing.all(1)
    count = kept.sum().clamp_min(1)
    return _divergence(relations(t, tau_t)[kept], relations(q, tau_q)[kept], dim=1) / count


def _divergence(target: Tensor, predicted: Tensor, dim: int) -> Tensor:
    """Return the sum over rows of KL(softmax(target) || softmax(predicted))."""
    return functional.kl_div(predicted.log_softmax(dim), target.log_softmax(dim), reduction="sum", log_target=True)
