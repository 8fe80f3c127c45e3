"""A station of the benchmark that loads nothing, to test how stations are asked."""


class LightStation:
    """In place of :class:`decoding.Station`: fails as it does, and measures nothing."""

    def __init__(self, name, dtype):
        if dtype != "float32":
            raise TypeError(f"{name} has no {dtype}")

    def prepare(self, case):
        self.sentences = case.batch

    def measure(self):
        took = {"seconds": 0.5, "each": [0.5], "memory": 1.0}
        return {**took, "sentences": self.sentences, "tokens": 7 * self.sentences}
