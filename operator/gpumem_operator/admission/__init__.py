"""Decides about a pod that is being created: which policy wins, what is declared, what is refused.

raw pod -> PodFacts -> policy that wins -> declarations -> plan -> operations
              |             |                  |
           api/pods     selection.py     declaration.py      review.py joins them
"""
