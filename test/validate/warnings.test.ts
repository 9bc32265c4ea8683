import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFolder } from '../support/fixture.ts'
import { sluice } from '../support/gateway.ts'
import { configMap, gateway, type Manifest, manifest, tlsSecret } from '../support/manifests.ts'

const folder = useFolder('sluice-validate-warnings-')
const day = 24 * 3_600_000

/** `Kind/name path: message` of every warning; fails if there is an error. */
async function warningsOf(...objects: Manifest[]): Promise<string[]> {
  const file = join(folder, 'all.yaml')
  writeFileSync(file, manifest(...objects))
  const { code, stdout } = await sluice('validate', '-f', file, '-o', 'json')
  expect(code).toBe(0)
  const { objects: checked } = JSON.parse(stdout) as {
    objects: { kind: string; name: string; warnings: { path: string; message: string }[] }[]
  }
  return checked.flatMap(({ kind, name, warnings }) =>
    warnings.map(({ path, message }) => `${kind}/${name} ${path}: ${message}`),
  )
}

describe('validate warns of certificates that', () => {
  const authority = useAuthority()
  const old = useAuthority({ notAfter: new Date(Date.now() - day) })
  const pem = (days: number) =>
    authority.issue(['a.example.com'], 'ec', { notAfter: new Date(Date.now() + days * day) })

  it('have expired, but not of others', async () => {
    const warnings = await warningsOf(
      tlsSecret('ended', pem(-1)),
      tlsSecret('good', authority.issue(['a.example.com'])),
    )
    expect(warnings).toEqual([
      expect.stringMatching(/^Secret\/ended data\["tls.crt"\]: tls.crt expired at 20\S+Z$/),
    ])
  })

  it('are authorities, unless a bundle has a valid one', async () => {
    const warnings = await warningsOf(
      configMap('old', { 'ca.crt': old.certificate }),
      configMap('mixed', { 'ca.crt': `${old.certificate}${authority.certificate}` }),
    )
    expect(warnings).toEqual([
      expect.stringMatching(/^ConfigMap\/old data\["ca.crt"\]: ca.crt expired at 20\S+Z$/),
    ])
  })
})

describe('validate warns of a regular expression that', () => {
  const route = (name: string, matches: object[], hostnames?: string[], kind = 'HTTPRoute') => ({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind,
    metadata: { name },
    spec: {
      parentRefs: [{ name: 'edge' }],
      ...(hostnames && { hostnames }),
      rules: matches.map((match) => ({ matches: [match] })),
    },
  })
  const regex = (value: string, more = {}) => ({
    path: { type: 'RegularExpression', value },
    ...more,
  })
  const prefix = (value: string, more = {}) => ({ path: { type: 'PathPrefix', value }, ...more })
  const wins = (winner: string, path: string) =>
    expect.stringContaining(`${winner} takes every path under ${path};`)

  it.each([
    ['/', '/user/[0-9]+'],
    ['/user', '/user/[0-9]+'],
    ['/user/', '^/user/(a|b)$'],
    ['/v1', '/v1\\/x?y'],
    ['/api', '/api'],
  ])('is under the prefix %s: %s', async (path, value) => {
    expect(await warningsOf(gateway(80), route('r', [regex(value), prefix(path)]))).toEqual([
      wins('spec.rules[1] of HTTPRoute default/r', path),
    ])
  })

  it.each([
    ['/user', '/user[0-9]+'],
    ['/user', '/users?/x'],
    ['/user', '/user/a|/b'],
    ['/user', '(?i)/user/a'],
    ['/user/x', '/user/.*'],
    ['/user', '/user'.replace('r', 'r*/a')],
  ])('but not of one that also matches elsewhere than under %s: %s', async (path, value) => {
    expect(await warningsOf(gateway(80), route('r', [regex(value), prefix(path)]))).toEqual([])
  })

  it('loses to another route of the same host, whatever its own conditions', async () => {
    const more = { method: 'GET', headers: [{ name: 'X-A', value: '1' }] }
    const warnings = await warningsOf(
      gateway(80),
      route('a', [regex('/a/.*', more)], ['a.example.com']),
      route('b', [prefix('/', { headers: [{ name: 'x-a', value: '1' }] })], ['a.example.com']),
    )
    expect(warnings).toEqual([wins('spec.rules[0] of HTTPRoute default/b', '/')])
  })

  it('but not if the prefix has conditions of its own, or is of another host', async () => {
    const warnings = await warningsOf(
      gateway(80),
      route('a', [regex('/a/.*')], ['a.example.com', 'b.example.com']),
      route('b', [prefix('/', { method: 'GET' })], ['a.example.com', 'b.example.com']),
      route('c', [prefix('/')], ['a.example.com']),
    )
    expect(warnings).toEqual([])
  })

  it('is a method of a GRPCRoute', async () => {
    const method = { type: 'RegularExpression', service: 'shop\\..*', method: 'Get.*' }
    const all = { headers: [] }
    const rules = route('g', [{ method }, all], undefined, 'GRPCRoute')
    expect(await warningsOf(gateway(80), rules)).toEqual([
      wins('spec.rules[1] of GRPCRoute default/g', '/'),
    ])
  })
})
