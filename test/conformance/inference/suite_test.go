// Package inference runs the conformance suite of the Gateway API Inference Extension against a
// cluster. `run.ts --inference` makes the cluster, builds this as a test binary and gives it the flags.
package inference

import (
	"testing"

	"sigs.k8s.io/gateway-api-inference-extension/conformance"
)

func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}
