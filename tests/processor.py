"""What this machine's processor computes exactly."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# without it sums of two products of 8 bits saturate at 16 bits
VNNI = not CPUINFO.exists() or "vnni" in CPUINFO.read_text()
