"""What a plan puts into a pod, one file for each thing: which variables, containers and volumes.

Every file answers with data; `environment.py` has the one set of rules by which ours and the
author's own variables meet.
"""
