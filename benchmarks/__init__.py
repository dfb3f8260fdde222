"""fluidx beside its peers, in one sitting, as ratios."""
