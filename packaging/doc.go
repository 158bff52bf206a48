// Package packaging has no code: its tests hold the Helm chart to what it renders. dist.sh builds all that a release holds.
package packaging
