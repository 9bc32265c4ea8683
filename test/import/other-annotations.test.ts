import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Imported, runImport } from './rig.ts'

const ingress = (name: string, annotations: string, namespace = 'shop') => `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: ${name}, namespace: ${namespace}, annotations: { ${annotations} } }
spec:
  tls: [{ hosts: [${name}.example.com], secretName: ${name}-tls }]
  rules:
    - host: ${name}.example.com
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: app, port: { number: 80 } } } }] }
`

interface Annotated {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly annotations?: Readonly<Record<string, string>>
  }
}

const annotationsOf = ({ manifests }: Imported, wanted: string, name: string) =>
  Object.values(manifests)
    .flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Annotated))
    .find(({ kind, metadata }) => kind === wanted && metadata.name === name)?.metadata.annotations

const reported = ({ findings }: Imported, key: string) =>
  findings.filter(({ field }) => field.includes(key)).map(({ kind }) => kind)

describe('annotations of an Ingress that nginx does not read', () => {
  it('go to the Gateway if cert-manager reads them there', async () => {
    const imported = await runImport(
      ingress(
        'a',
        'cert-manager.io/cluster-issuer: letsencrypt, acme.cert-manager.io/http01-edit-in-place: "true", kubernetes.io/tls-acme: "true"',
      ),
    )
    expect(imported.code).toBe(0)
    expect(annotationsOf(imported, 'Gateway', 'gateway')).toEqual({
      'cert-manager.io/cluster-issuer': 'letsencrypt',
      'acme.cert-manager.io/http01-edit-in-place': 'true',
      'kubernetes.io/tls-acme': 'true',
    })
    expect(reported(imported, 'cluster-issuer')).toEqual(['changed'])
  })

  it.each(['external-dns.alpha.kubernetes.io', 'external-dns.kubernetes.io'])(
    'go to the Gateway and to routes if external-dns reads them there (%s)',
    async (prefix) => {
      const imported = await runImport(
        ingress('a', `${prefix}/hostname: b.example.com, ${prefix}/target: 192.0.2.1`),
      )
      expect(annotationsOf(imported, 'Gateway', 'gateway')).toMatchObject({
        [`${prefix}/target`]: '192.0.2.1',
      })
      expect(annotationsOf(imported, 'HTTPRoute', 'a-a-example-com')).toEqual({
        [`${prefix}/hostname`]: 'b.example.com',
      })
      expect(reported(imported, 'hostname')).toEqual(['changed'])
      expect(reported(imported, 'target')).toEqual(['changed'])
    },
  )

  it('are reported if another Ingress has another value, or is in another namespace', async () => {
    const imported = await runImport(
      ingress('a', 'cert-manager.io/issuer: one') +
        ingress('b', 'cert-manager.io/issuer: two') +
        ingress('c', 'cert-manager.io/issuer: one', 'other'),
      '--namespace',
      'shop',
    )
    expect(annotationsOf(imported, 'Gateway', 'gateway')).toEqual({
      'cert-manager.io/issuer': 'one',
    })
    expect(reported(imported, 'issuer').toSorted()).toEqual(['changed', 'lost', 'lost'])
  })

  it('are reported if no reader knows them, and refused if they may protect something', async () => {
    const unknown = await runImport(ingress('a', 'example.com/colour: blue'))
    expect(unknown.code).toBe(0)
    expect(reported(unknown, 'colour')).toEqual(['lost'])
    const guarded = await runImport(ingress('a', 'waf.example.com/allow-list: internal'))
    expect(guarded.code).toBe(3)
    expect(reported(guarded, 'allow-list')).toEqual(['protection'])
  })

  it('are left out if they belong to tools that manage the Ingress', async () => {
    const imported = await runImport(
      ingress(
        'a',
        'kubernetes.io/ingress.class: nginx, meta.helm.sh/release-name: a, kubectl.kubernetes.io/last-applied-configuration: x',
      ),
    )
    expect(imported.findings).toEqual([])
    expect(annotationsOf(imported, 'Gateway', 'gateway')).toBeUndefined()
  })
})

describe('a host with two certificates', () => {
  it('keeps that of the first Ingress, as nginx does, and reports the other', async () => {
    const second = ingress('b', '').replaceAll('b.example.com', 'a.example.com')
    const imported = await runImport(ingress('a', '') + second)
    expect(imported.manifests['gateway.yaml']).toContain('name: a-tls')
    expect(imported.manifests['gateway.yaml']).not.toContain('name: b-tls')
    expect(imported.findings.map(({ reason }) => reason).join()).toContain('not that of b-tls')
  })
})
