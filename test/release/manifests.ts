/** Manifests of a gateway that answers every request itself. */
export const manifestsOf = (port: number, body: string) => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge, namespace: default }
spec:
  gatewayClassName: agentgateway
  listeners: [{ name: http, port: ${port}, protocol: HTTP }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: all, namespace: default }
spec:
  parentRefs: [{ name: edge }]
  rules: [{}]
---
apiVersion: sluice.dev/v1alpha1
kind: GatewayPolicy
metadata: { name: answer, namespace: default }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: all }]
  traffic:
    directResponse: { status: 200, body: ${body} }
`
