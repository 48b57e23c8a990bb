"""The command that says what a training will take: estimate."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from ssge.cli.options import AS_FOUND, READING, SETTINGS, Reading, Switch, be_quiet, examples, given, use_threads


def register(app: App, config: Any) -> None:
    """Add the command; ``config`` is the class whose fields become flags."""
    flags = Annotated[config, SETTINGS]

    @app.command(
        help_epilogue=examples(
            "ssge estimate cora --recipe ssge/cora",
            "ssge estimate edges.csv --nodes nodes.parquet --widths 512 512",
            "ssge estimate sbm:nodes=1000000 --epochs 50 --threads 2",
        )
    )
    def estimate(
        graph: str,
        /,
        *,
        method: str = "ssge",
        recipe: str | None = None,
        config_file: Annotated[Path | None, Parameter(name="--config")] = None,
        dtype: Literal["float32", "float64"] = "float32",
        threads: int | None = None,
        quiet: Switch = False,
        json: Switch = False,
        reading: Annotated[Reading, READING] = AS_FOUND,
        settings: flags = None,
    ) -> None:
        """Tell parameters, memory and time of a training before it starts; takes some seconds.

        Settings come as they do for fit. Memory is counted; time is measured on small graphs of the same kind, on
        this machine as busy as it is now, and continued to the size of the graph.

        Parameters
        ----------
        graph
            Name of a dataset, or file, as for fit.
        method
            Name of the method (ssge ls methods).
        recipe
            Take the settings of a recipe (ssge ls recipes).
        config_file
            Take settings from a TOML file, such as the config.toml of another run.
        dtype
            Precision of the training.
        threads
            Threads of the processor.
        quiet
            No notes.
        json
            Print as JSON.
        """
        be_quiet(quiet)
        use_threads(threads)
        from ssge.experiments import run as runs
        from ssge.experiments.estimate import available_memory, describe
        from ssge.experiments.estimate import estimate as estimated
        from ssge.experiments.recipes import load_recipe
        from ssge.experiments.sources import open_graph, suited_to

        chosen = load_recipe(recipe) if recipe else None
        method = chosen.method if chosen else method
        data = open_graph(graph, suited_to(method, graph, reading.given()))
        resolved = runs.resolve_config(
            method,
            chosen.config if chosen else runs.suited(method, data),
            runs.config_file(config_file),
            given(settings),
        )
        found = estimated(data, method, resolved, dtype)
        if json:
            free = available_memory()
            print(jsonlib.dumps({**found._asdict(), "epochs": resolved.epochs, "memory_available": free}))
        else:
            print(describe(found, resolved.epochs))
