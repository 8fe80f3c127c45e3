"""Two systems compared by the paired bootstrap."""

from sbnmt_plugin.tools.results.bootstrap import bootstrap


def p_of(metric, baseline, system, reference):
    """Return the p-value of a system's difference from the baseline."""
    texts = {"baseline": baseline, "system": system}
    found, _ = bootstrap(texts, [reference], "baseline", {"its": metric})
    return found["system"]["its"].p
