"""An operator that turns GPU memory policies into settings of pods, and tells what holds them."""
