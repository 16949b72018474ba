"""The queue in simulated worlds: no threads, one dice, every interleaving that it chooses."""
