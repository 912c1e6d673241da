"""What readers see: tables, figures, pages. Figures need the extra ``[report]``."""
