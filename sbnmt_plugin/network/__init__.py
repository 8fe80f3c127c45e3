"""Neural networks of the decoders, and the protocol between decoder and search."""
