"""The engines for integer programs, by name. Each says what it can do; what it cannot, it does without.

Nothing is imported before an engine is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from enum import StrEnum

from dualcoll.errors import InputError
from dualcoll.lp.integer_program import Solver

__all__ = ["ENGINES", "Engine", "Feature", "default_engine", "get_engine"]

CLASH = "highspy 1.15 and ortools cannot be loaded together: pip install 'highspy!=1.15.*'"


class Feature(StrEnum):
    """What an engine can do beside solving."""

    WORKERS = "several threads"
    START = "start from a given solution"
    IMPROVEMENTS = "tell of better solutions on the way"
    WHOLE = "reckon in whole numbers, not in floats with tolerances"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that may be installed.

    Attributes:
        name: as the user says it. title: for people.
        package: what must be importable. hint: how to install it.
        module: where ``solve`` is. features: what it can do.
    """

    name: str
    title: str
    package: str
    hint: str
    module: str
    features: frozenset[Feature]

    @property
    def installed(self) -> bool:
        """Whether its package can be imported."""
        return importlib.util.find_spec(self.package) is not None

    def load(self) -> Solver:
        """The engine's solver.

        Raises:
            InputError: its package is not installed, or cannot be loaded.
        """
        where = f"engine {self.name}"
        if not self.installed:
            raise InputError(f"{self.title} is not installed", where=where, hint=self.hint)
        try:
            solver: Solver = importlib.import_module(self.module).solve
        except ImportError as error:
            raise InputError(f"{self.title} cannot be loaded: {error}", where=where, hint=CLASH) from None
        return solver


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "cp-sat",
            "OR-tools CP-SAT",
            "ortools",
            "pip install 'dualcoll[exact]', or use the engine highs",
            "dualcoll.lp.cp_sat",
            frozenset(Feature),
        ),
        Engine(
            "highs",
            "HiGHS",
            "highspy",
            "pip install highspy",
            "dualcoll.lp.highs_mip",
            frozenset({Feature.START, Feature.IMPROVEMENTS}),
        ),
        Engine(
            "gurobi",
            "Gurobi",
            "gurobipy",
            "pip install gurobipy, which needs a licence for all but small models, or use the engine cp-sat",
            "dualcoll.lp.gurobi",
            frozenset({Feature.WORKERS, Feature.START, Feature.IMPROVEMENTS}),
        ),
    )
}


def default_engine() -> str:
    """The name of the first engine that is installed; HiGHS always is."""
    return next(engine.name for engine in ENGINES.values() if engine.installed)


def get_engine(name: str) -> Engine:
    """The engine of that name.

    Raises:
        InputError: there is none, or it is not installed.
    """
    engine = ENGINES.get(name)
    if engine is None:
        raise InputError(f"engine {name!r} is not known", hint=f"use one of {', '.join(ENGINES)}")
    if not engine.installed:
        engine.load()
    return engine
