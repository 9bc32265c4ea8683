/** Source configurations of any size, in which everything that refers to something else does so. */

const repeat = (n: number, line: (at: number) => string): string =>
  Array.from({ length: n }, (_, at) => line(at)).join('')

const kong = (n: number) => `_format_version: "3.0"
services:
${repeat(
  n,
  (at) => `- name: s-${at}
  url: http://h-${at}.example/base
  routes: [{ name: r-${at}, paths: [/p-${at}] }, { paths: [/q-${at}] }]
  plugins: [{ name: acl, config: { allow: [g-${at}] } }, { name: basic-auth }, { name: key-auth }, { name: jwt }]
`,
)}routes:
${repeat(n, (at) => `- { service: { name: s-${at} }, paths: [/o-${at}] }\n`)}consumers:
${repeat(n, (at) => `- { username: u-${at}, acls: [{ group: g-${at} }] }\n`)}basicauth_credentials:
${repeat(n, (at) => `- { consumer: u-${at}, username: u-${at}, password: p }\n`)}keyauth_credentials:
${repeat(n, (at) => `- { consumer: u-${at}, key: k-${at} }\n`)}jwt_secrets:
${repeat(n, (at) => `- { consumer: u-${at}, key: k-${at}, secret: s }\n`)}plugins:
${repeat(n, (at) => `- { name: cors, route: r-${at} }\n- { name: datadog, service: s-0 }\n`)}`

const litellm = (n: number) => `model_list:
${repeat(
  n,
  (at) => `- model_name: m-${at}
  litellm_params: { model: openai/gpt-${at}, api_key: sk-${at} }
- model_name: m-${at}
  litellm_params: { model: anthropic/claude-${at}, api_key: os.environ/KEY_${at} }
`,
)}router_settings:
  fallbacks:
${repeat(n, (at) => `  - m-${at}: [m-${(at + 1) % n}]\n`)}`

const portkey = (n: number) =>
  `{"strategy":{"mode":"loadbalance"},"targets":[${Array.from(
    { length: n },
    (_, at) => `{"provider":"openai","api_key":"k-${at}","weight":${at + 1}}`,
  ).join(',')}]}`

const nginx = (n: number) =>
  repeat(
    n,
    (at) => `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: i-${at}
  annotations:
    nginx.ingress.kubernetes.io/limit-rps: "5"
    nginx.ingress.kubernetes.io/auth-type: basic
    nginx.ingress.kubernetes.io/auth-secret: users-${at}
spec:
  ingressClassName: nginx
  tls: [{ hosts: [h-${at}.example], secretName: t-${at} }]
  rules:
  - host: h-${at}.example
    http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: s-${at}, port: { number: 80 } } } }] }
  - host: shared.example
    http: { paths: [{ path: /p-${at}, pathType: Prefix, backend: { service: { name: s-${at}, port: { number: 80 } } } }] }
---
apiVersion: v1
kind: Secret
metadata: { name: users-${at} }
stringData: { auth: "a:{SHA}x" }
`,
  )

const envoyGateway = (n: number) =>
  repeat(
    n,
    (at) => `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: r-${at} }
spec:
  parentRefs: [{ name: edge }]
  rules: [{ backendRefs: [{ group: gateway.envoyproxy.io, kind: Backend, name: b-${at} }] }]
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: { name: b-${at} }
spec: { endpoints: [{ fqdn: { hostname: h-${at}.example, port: 80 } }] }
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: { name: p-${at} }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: r-${at} }]
  apiKeyAuth: { credentialRefs: [{ name: k-${at} }], extractFrom: [{ headers: [x-key] }] }
---
apiVersion: v1
kind: Secret
metadata: { name: k-${at} }
stringData: { a: b }
`,
  )

const agentgateway = (n: number) => `binds:
- port: 3000
  listeners:
  - routes:
${repeat(
  n,
  (at) => `    - matches: [{ path: { pathPrefix: /p-${at} } }]
      policies:
        apiKey: { keys: [{ key: k-${at} }] }
        extAuthz: { host: "a-${at}.example:90" }
        authorization: { rules: ['true', { deny: 'false' }] }
      backends: [{ host: "h-${at}.example:80" }]
`,
)}`

/** The configuration of each source, with `n` times the same parts. */
export const inputs: Readonly<Record<string, (n: number) => string>> = {
  agentgateway,
  'envoy-gateway': envoyGateway,
  kong,
  litellm,
  'nginx-ingress': nginx,
  portkey,
}
