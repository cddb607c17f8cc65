from __future__ import annotations

from fractions import Fraction

import pytest

from dualcoll.collectives.expert_routing import ExpertRouting, Overflow
from dualcoll.collectives.routing_file import routing_from_data
from dualcoll.errors import InputError
from dualcoll.topology.source_text import SourceText

PLAIN = "hidden: 8\ndtype: bf16\ntokens:\n- [1, 2, 3, 4]\n- [5, 6, 7, 8]\n"


def read(text: str) -> ExpertRouting:
    source = SourceText.parse(text.encode(), "moe.yaml")
    return routing_from_data(source.data, source.place)


def test_what_is_left_out() -> None:
    """Experts in order, as many on each rank; no padding, no limit."""
    found = read(PLAIN)
    assert found.tokens.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert found.hosts.tolist() == [0, 0, 1, 1]
    assert (found.token_bytes, found.block, found.capacity_factor, found.names) == (16, 1, None, ())


def test_every_key() -> None:
    """Experts by the name of their rank; a factor is the decimal that is written."""
    found = read(
        PLAIN + "ranks: [g4, g5]\nexperts: [g5, g4, g5, g5]\nblock: 16\ncapacity_factor: 1.1\noverflow: reroute\n"
    )
    assert found.hosts.tolist() == [1, 0, 1, 1]
    assert (found.block, found.capacity_factor, found.overflow) == (16, Fraction(11, 10), Overflow.REROUTE)
    assert found.names == ("g4", "g5")


def test_json_and_experts_by_number() -> None:
    """Numbers are rows of tokens where ranks have no names."""
    found = read('{"hidden": 8, "dtype": "FP8", "tokens": [[1, 2], [3, 4]], "experts": [1, 0], "capacity_factor": 2}')
    assert (found.hosts.tolist(), found.token_bytes, found.capacity_factor) == ([1, 0], 8, Fraction(2))
    assert found.overflow is Overflow.DROP


@pytest.mark.parametrize(("dtype", "nbytes"), [("float32", 32), ("half", 16), ("int8", 8), ("2", 16), (" BF16 ", 16)])
def test_bytes_of_a_token(dtype: str, nbytes: int) -> None:
    """By type or by number."""
    assert read(PLAIN.replace("bf16", f"'{dtype}'")).token_bytes == nbytes


TYPES = "float64, fp64, float32, fp32, tf32, int32, float16, fp16, half, bfloat16, bf16, fp8, float8, int8, uint8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "moe.yaml: it is not a mapping of keys to values"),
        ("hidden: 8\ndtype: fp8\n", "moe.yaml: tokens is missing"),
        (PLAIN + "blocks: 3", "moe.yaml:6: blocks: unknown key 'blocks'; did you mean block?"),
        (
            PLAIN.replace("6", "x"),
            "moe.yaml:5: tokens[1][1]: 'x' is not a whole number of at most nine digits",
        ),
        (PLAIN.replace("6", "-6"), "moe.yaml:5: tokens[1][1]: -6 tokens are negative"),
        (
            PLAIN.replace(", 8", ""),
            "moe.yaml:5: tokens[1]: a row of 3 where the first has 4; give one column for each expert",
        ),
        (
            "{hidden: 8, dtype: fp8, tokens: []}",
            "moe.yaml:1: tokens: there are no tokens; give one row for each rank and one column for each expert",
        ),
        (PLAIN.replace("hidden: 8", "hidden: 0"), "moe.yaml:1: hidden: 0 is not 1 or more"),
        (PLAIN + "block: 0", "moe.yaml:6: block: 0 is not 1 or more"),
        (
            PLAIN.replace("bf16", "bf17"),
            f"moe.yaml:2: dtype: 'bf17' is not known; use one of {TYPES}, or the bytes of one element: 1, 2, 4 or 8",
        ),
        (
            PLAIN + "capacity_factor: 0",
            "moe.yaml:6: capacity_factor: 0 is not a positive number; 1.25 means a quarter more than the mean",
        ),
        (
            PLAIN + "capacity_factor: 1e999",
            "moe.yaml:6: capacity_factor: inf is not a positive number; 1.25 means a quarter more than the mean",
        ),
        (
            PLAIN + "overflow: drop",
            "moe.yaml:6: overflow: without a capacity_factor nothing overflows; give one, or leave overflow out",
        ),
        (
            PLAIN + "capacity_factor: 1\noverflow: keep",
            "moe.yaml:7: overflow: 'keep' is not known; use one of drop, reroute",
        ),
        (PLAIN + "ranks: [a]", "moe.yaml:6: ranks: 1 names for 2 rows of tokens; name the rank of each row"),
        (
            PLAIN.replace(", 4]", "]").replace(", 8]", "]"),
            "moe.yaml:3: tokens: 3 experts do not divide over 2 ranks; list under experts the rank that holds each",
        ),
        (
            PLAIN + "experts: [0, 1]",
            "moe.yaml:6: experts: 2 entries for 4 columns of tokens; give the rank that holds each expert",
        ),
        (
            PLAIN + "experts: [0, 1, 2, 1]",
            "moe.yaml:6: experts[2]: '2' is not a rank; rows of tokens are 0 to 1",
        ),
        (
            PLAIN + "experts: [a, b, c, b]\nranks: [a, b]",
            "moe.yaml:6: experts[2]: 'c' is not a rank; use a name listed under ranks",
        ),
    ],
)
def test_what_is_no_routing_is_refused(text: str, message: str) -> None:
    """With its line and key."""
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value) == message
