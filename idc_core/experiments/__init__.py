"""The papers' research questions, as functions from a network and its tests to arrays."""
