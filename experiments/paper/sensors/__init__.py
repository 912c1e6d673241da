"""The paper's application: which sensors tell what a person is doing at home."""
