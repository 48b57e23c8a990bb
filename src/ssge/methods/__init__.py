"""Methods: views + encoder + objective, one file each."""

from ssge.methods._base import METHODS, Method, MethodConfig
from ssge.methods.ssge import SSGE

__all__ = ["METHODS", "SSGE", "Method", "MethodConfig"]
