"""The command line: start and follow runs, list and inspect them, approve, reject or cancel them.

python run_workflow.py pipelines/nyc_flights.yml
python run_workflow.py --help
"""

import sys

from runtime.interpreter import can_run

if not can_run("sluice"):
    sys.exit(2)

from cli.app import main

if __name__ == "__main__":
    main(sys.argv[1:])
