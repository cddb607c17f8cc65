"""Plans: trees with rates and routes, the data's shares, link prices and claims."""
