"""Results as figures: pure functions from plain arrays to plotly figures, ECharts options and pictures."""
