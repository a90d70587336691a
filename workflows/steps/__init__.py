"""The steps of a run, one module each: write, audit, approval, publish, rebase, fencing, compensation, finish."""
