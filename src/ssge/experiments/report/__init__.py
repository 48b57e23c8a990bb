"""Pages that show a run: one HTML file that loads nothing and works without a network.

The interactive charts are drawn by plotly.js, which the Python package plotly carries and which is written into the
page. Names from files reach the page as text alone, and its scripts may neither load anything nor be added to.
"""

from ssge.experiments.report.page import write_map_page, write_report

__all__ = ["write_map_page", "write_report"]
