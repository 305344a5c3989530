"""Attribution: the rules of relevance propagation, and the propagation itself."""
