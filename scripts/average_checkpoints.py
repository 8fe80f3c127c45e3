#!/usr/bin/env python3
"""`sbnmt average`: average the parameters of checkpoints."""

import clone

clone.run(__file__)
