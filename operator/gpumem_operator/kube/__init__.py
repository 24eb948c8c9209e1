"""Access to the API server: who we are, one request, one watched kind."""
