# The name of this file does not end with .yaml, so that `sluice -f` does not read it: it is not YAML until helm renders it.
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: edge
spec:
  gatewayClassName: agentgateway
  listeners:
    - name: http
      port: {{ .Values.port }}
      protocol: HTTP
{{- range list "shop-v1" "shop-v2" }}
---
apiVersion: sluice.dev/v1alpha1
kind: GatewayBackend
metadata:
  name: {{ . }}
spec:
  static:
    host: 127.0.0.1
    port: 9101
{{- end }}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: shop
spec:
  parentRefs:
    - name: edge
  hostnames: ["shop.example.com"]
  rules:
    - name: cart
      matches:
        - path: { type: PathPrefix, value: /cart }
      backendRefs:
        - { group: sluice.dev, kind: GatewayBackend, name: {{ .Values.cart }} }
    - name: rest
      backendRefs:
        - { group: sluice.dev, kind: GatewayBackend, name: shop-v1 }
---
apiVersion: sluice.dev/v1alpha1
kind: GatewayPolicy
metadata:
  name: rules
spec:
  targetRefs:
    - group: gateway.networking.k8s.io
      kind: HTTPRoute
      name: shop
  traffic:
    authorization:
      action: Deny
      policy:
        matchExpressions:
          - request.path.startsWith("/admin")
          {{- if not .Values.partnersCanOrder }}
          - request.headers["x-team"] == "partner" && request.method == "POST"
          {{- end }}
