"""The answer as an object: evidences, posteriors, averages, sensitivity, files."""
