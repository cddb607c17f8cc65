"""DualColl: collectives by fractional tree packing. One packing problem, many oracles."""
