"""A rank's process: its settings, how ranks meet, and how it ends.

A pool starts `process.main` with `settings.RankSettings`; torchrun starts `torchrun.run_under_torchrun`.
`watch` ends a rank with its parent from inside, `guardian` from outside where a rank cannot. It imports
the worker's modules beside it, and what the worker imports.
"""
