"""Everything that a machine without a network needs to run a cluster with a real node, as files.

`python -m devcluster.bundle FOLDER` writes an archive in parts: the checkout, the programs of
control plane and node, the images, the Python packages, and the programs of this machine that
others lack. There, `start` runs a command with all of it.
"""
