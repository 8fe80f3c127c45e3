#!/usr/bin/env python3
"""`sbnmt translate`: pseudo targets with a teacher, shard by shard."""

import clone

clone.run(__file__)
