"""Tables and figures of topologies and plans."""
