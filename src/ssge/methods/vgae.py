"""VGAE: a graph autoencoder whose latent code is one Gaussian per node, regularized toward N(0, I)."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn

from ssge.graph import GraphInfo
from ssge.methods._autoencoder import Autoencoder, AutoencoderConfig
from ssge.nn.encoders import GCN
from ssge.objectives import Losses
from ssge.objectives.reconstruction import gaussian_kl
from ssge.ops.random import Key
from ssge.views import View

LARGEST_LOG_SIGMA = 10.0


class VGAEConfig(AutoencoderConfig):
    """Settings of VGAE."""

    divergence_weight: float = Field(1.0, ge=0, description="Weight of the divergence from N(0, I), divided by n.")


class VGAE(Autoencoder):
    """Variational graph autoencoder; see `ssge.objectives.reconstruction` for the formulas.

    One GCN gives [mu | log sigma], n x 2d: all layers but the last are shared, and the halves of the last weight are
    the two heads. The loss is reconstruction(mu + sigma eps) + gaussian_kl / n: the negative evidence lower bound
    divided by the n^2 pairs, except for the equal weight of edges and non-edges. log sigma is clipped at 10. The
    embedding is mu.

    Random: the initial weights, eps of each step and the sampled non-edges. Cost as of GAE, with a last layer of twice
    the width.

    Differences from the released code: those of GAE, and the clipping, which it does not have.
    """

    name = "vgae"
    title = "VGAE"
    reference = "Kipf and Welling, Variational Graph Auto-Encoders, 2016"

    config: VGAEConfig

    def __init__(self, config: VGAEConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        *shared, d = config.widths
        self.encoder = GCN((info.num_features, *shared, 2 * d), "relu", generator)
        for head in self.encoder.affine[-1].weight.detach().chunk(2, dim=1):  # by the width of each head, not by 2d
            nn.init.xavier_uniform_(head, generator=generator)

    def forward(self, view: View, key: Key) -> Losses:
        """Return the reconstruction loss of a code drawn for the clean view, plus the divergence over n."""
        mu, log_sigma = self.encoder(view).chunk(2, dim=1)
        log_sigma = log_sigma.clamp(max=LARGEST_LOG_SIGMA)
        noise = torch.randn(
            mu.shape, generator=key.fold_in("noise").generator(mu.device), device=mu.device, dtype=mu.dtype
        )
        reconstruction = self.reconstruction(mu + noise * log_sigma.exp(), view, key)
        divergence = gaussian_kl(mu, log_sigma)
        total = reconstruction + self.config.divergence_weight / view.num_nodes * divergence
        return Losses(total, {"reconstruction": reconstruction.detach(), "divergence": divergence.detach()})

    def encode(self, prepared: View, nodes: Tensor | None = None) -> Tensor:
        """Return mu, n x d, or the rows of some nodes."""
        return super().encode(prepared, nodes)[:, : self.config.widths[-1]]
