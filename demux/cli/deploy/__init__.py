"""Commands about the plan: plan, apply, destroy, export, grants."""
