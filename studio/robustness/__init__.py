"""What only the robustness page is made of."""
