"""What only the differential page is made of."""
