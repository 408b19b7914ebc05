from __future__ import annotations
def doubts_of(judged, wrong, threshold):
    return ()
