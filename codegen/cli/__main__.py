"""`python -m msgen.codegen.cli`: the same as the command `msgen`."""

from . import main

main()
