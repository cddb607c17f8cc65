"""What limits a plan, in words."""
