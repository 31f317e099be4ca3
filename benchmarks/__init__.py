"""Speed, memory and agreement, as ratios against rivals measured in the same run.

    python -m benchmarks              the whole table
    python -m benchmarks --quick      a twentieth of the rows: does it run at all
    python -m benchmarks --only full  the cases whose name contains "full"
    python -m benchmarks --save       also write benchmarks/results.md

A rival is one file in `rivals/`; a case is one line in `cases.py`. The kinds of case are in
`measures.py`, for fits that have an optimum to reach in `equal.py`, and for posteriors and chosen
priors in `bayes.py`; what counts as equal accuracy is in `accuracy.py`.
`pip install "posteriori[bench]"` brings all the rivals; one that is not installed is left out, and
the table says so.
"""
