"""The leader's endpoint for reports: who sends, what they may say, and what they are answered."""
