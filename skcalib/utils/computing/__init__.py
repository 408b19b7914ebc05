"""Blocks, chunks, tensors, threads and the sums over them."""
