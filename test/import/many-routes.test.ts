/** A policy has at most 16 targets, but every route of a source gets its policies. */
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { runImport } from './rig.ts'

interface Converted {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly targetRefs?: readonly { readonly kind: string; readonly name: string }[]
    readonly traffic?: Readonly<Record<string, unknown>>
  }
}

const hosts = Array.from({ length: 40 }, (_, n) => `host-${n}.example.com`)

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: many
  annotations:
    nginx.ingress.kubernetes.io/whitelist-source-range: 192.0.2.0/24
    nginx.ingress.kubernetes.io/limit-rps: "5"
spec:
  ingressClassName: nginx
  rules:
${hosts.map((host) => `    - { host: ${host}, http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: main, port: { number: 80 } } } }] } }`).join('\n')}
`

const paths = Array.from({ length: 400 }, (_, n) => `/path-${n}`)

const kong = `
_format_version: "3.0"
services:
  - name: main
    url: http://127.0.0.1:9000
    routes:
      - name: many
        paths: [${paths.join(', ')}]
    plugins:
      - name: ip-restriction
        config: { allow: [192.0.2.0/24] }
`

describe('sluice import of a source with more routes than a policy has targets', () => {
  it.each([
    { source: 'nginx Ingress', text: ingress, field: 'rateLimit' },
    { source: 'nginx Ingress', text: ingress, field: 'authorization' },
    { source: 'Kong', text: kong, field: 'authorization' },
  ])('sets $field on every route ($source)', async ({ text, field }) => {
    const { manifests, code } = await runImport(text, '--allow-loss')
    expect(code).toBe(0)
    const objects = Object.values(manifests).flatMap((one) =>
      parseAllDocuments(one).map((document) => document.toJS() as Converted),
    )
    const routes = objects.filter(({ kind }) => kind === 'HTTPRoute')
    expect(routes.length).toBeGreaterThan(16)
    const covered = objects.flatMap(({ kind, spec }) =>
      kind === 'GatewayPolicy' && spec.traffic?.[field] !== undefined
        ? (spec.targetRefs ?? []).map(({ name }) => name)
        : [],
    )
    expect(covered.toSorted()).toEqual(routes.map(({ metadata }) => metadata.name).toSorted())
  })
})
