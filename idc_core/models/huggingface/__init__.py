"""Networks from Hugging Face folders. Each module is imported where it is needed: some need torch and transformers."""
