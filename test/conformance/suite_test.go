// Package conformance runs the Gateway API's own conformance suite against a cluster. `run.ts` makes
// the cluster, builds this as a test binary and gives it the flags.
package conformance

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}
