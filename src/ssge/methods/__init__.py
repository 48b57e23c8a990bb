"""Methods: views + encoder + objective, one file each. To add a method, add a file to this folder."""

from importlib import import_module
from pkgutil import iter_modules

from ssge.methods._base import METHODS, BaseConfig, Method, MethodConfig

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["METHODS", "BaseConfig", "Method", "MethodConfig"]
