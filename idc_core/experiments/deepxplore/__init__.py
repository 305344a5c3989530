"""DeepXplore's tables by its protocol, each figure beside the published one."""
