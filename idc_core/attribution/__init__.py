"""Attribution by name: the rules of relevance propagation, and methods through captum."""
