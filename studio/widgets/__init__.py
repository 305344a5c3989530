"""Widgets that pages share: charts, galleries, downloads, text."""
