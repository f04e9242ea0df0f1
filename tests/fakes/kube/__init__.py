"""A stand-in for a Kubernetes cluster: NOT Kubernetes, and never called so.

The real `kubectl` talks HTTP to a small server in this process, which keeps objects in memory and
follows the documented rules that brctl depends on: resourceVersion conflicts, immutable fields of
Jobs and JobSets, evictions that a PodDisruptionBudget refuses with 429, graceful deletion. A loop
stands in for the Job and JobSet controllers, the scheduler and the kubelets; a pod's command runs
as a real process on this machine. What it leaves out, no test here says anything about.
"""
