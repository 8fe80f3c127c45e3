"""Flags of 0.2.0 that are gone, and their remedies."""

# Checkpoints that were trained with them are read as ever: what stands in their
# settings asks for nothing any more.
RETIRED = {
    "--sb-same-text": "train on three triples with --sb-partner-noise instead",
    "--sb-partner": "leave it out (text), or use --sb-partner-noise (own)",
    "--sb-partner-dropout": "leave it out",
    "--sb-freeze-writer": "leave it out: --sb-reader freezes the writer",
}


def refusal(flag: str) -> str:
    """Return what the refusal of one of these flags says."""
    return f"{flag} is no option any more: {RETIRED[flag]}"
