"""Hooks of the site: links from a page to a file of the repository outside docs/ become the plain name of that file.

On a code host such a link leads to the file. The site does not contain it, and has no address of the repository.
"""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./(?:examples|benchmarks)/([\w./]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the links of one page."""
    return _OUTSIDE.sub(
        lambda found: f"{found[1]} (`{found[2]}`)" if found[1] != found[2] else f"`{found[1]}`", markdown
    )
