"""Embed a PyTorch Geometric ``Data``: vectors in ``data.z``, the encoder as a plain ``nn.Module``.

The graph is Zachary's karate club, which comes with PyTorch Geometric: 34 members, friendships, and four groups with
one labeled member each. A linear layer on the embedding learns from these four.

    python examples/pytorch_geometric.py
"""

from __future__ import annotations

import torch
from torch_geometric.datasets import KarateClub

import ssge
from ssge.views import View

data = KarateClub()[0]
keys = set(data.keys())
model = ssge.SSGE(widths=(32, 16), random_state=0).fit(data)
assert set(data.keys()) == keys  # the input is never changed

data.z = torch.from_numpy(model.embedding_)

torch.manual_seed(0)
layer = torch.nn.Linear(data.z.shape[1], int(data.y.max()) + 1)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.05, weight_decay=1e-3)
for _ in range(200):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(layer(data.z[data.train_mask]), data.y[data.train_mask]).backward()
    optimizer.step()
right = layer(data.z).argmax(dim=1) == data.y
print(f"{100 * right[~data.train_mask].float().mean():.1f} % of the other members are put into the right group")

# The encoder maps a view of a graph to raw vectors; embedding_ is scaled to root mean square 1.
encoder: torch.nn.Module = model.encoder_
with torch.no_grad():
    output = encoder(View.of(ssge.Graph.of(data)))
assert torch.allclose(output / output.square().mean().sqrt(), data.z, atol=1e-4)
parameters = sum(p.numel() for p in encoder.parameters())
print(f"{type(encoder).__name__}: {parameters:,} parameters, ready for any training loop")
print(data)
