// The modules whose CRDs the cluster tests install. They stand apart from the programs, so that
// their dependencies do not move the versions that Kubernetes is built with.
module sluice.dev/test-assets/crds

go 1.26.0

require (
	sigs.k8s.io/gateway-api v1.6.1
	sigs.k8s.io/gateway-api-inference-extension v1.6.0
)
