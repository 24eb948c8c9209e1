"""What is done about pods that hold more than their limit: facts of one pod to a decision. Pure."""
