"""The page of the efficiency comparison: ours beside the paper's, a dash where nothing was measured yet."""

from __future__ import annotations

import efficiency
from pages import Record
from ssge.experiments.efficiency import Measured
from ssge.records import machine


def test_cells_show_ours_and_the_paper_s() -> None:
    cell = Measured(781_826, 300, 2, 0.5, 0.25, 936.4)._asdict()
    text = efficiency.block(Record(machine=machine(), threads=1, figures={"dgi/pubmed": cell}))
    assert "| DGI | - | - | 781,826 / 782K | - |" in text
    assert "| DGI | - | - | 76 (300 x 0.25) / 10.24 | - |" in text
    assert "| DGI | - | - | 936 / 1,024 | - |" in text
    assert text.count("| SSGE | - | - | - | - |") == 3
