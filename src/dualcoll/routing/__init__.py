"""How bytes travel: from the wiring and the forwarding policy to routes of logical edges."""
