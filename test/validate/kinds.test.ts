/** `sluice validate` on mistakes of every kind that only a status tells. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { validate } from '../../src/tools/cli/validate/validate.ts'
import { sluice } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, policy, staticBackend } from '../support/manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-validate-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, 'all.yaml')

type Fields = Readonly<Record<string, unknown>>

const group = 'gateway.networking.k8s.io'
const edge = gateway(8080)
const listeners = (...entries: Fields[]) => gateway(0, { listeners: entries })
const route = (rule: Fields, more: Fields = {}) => httpRoute('app', { rules: [rule], ...more })
const toNowhere = { backendRefs: [{ name: 'nowhere', port: 80 }] }

/** Lines without warnings, which references.test.ts checks. */
async function run(...objects: Fields[]): Promise<{ code?: number; lines: string[] }> {
  writeFileSync(file, manifest(...objects))
  const { exitCode, text } = await validate({ file: [file], output: 'text' }, () => undefined)
  const lines = text().filter((line) => !line.includes(': warning: '))
  return { code: exitCode, lines: lines.map((line) => line.replace(folder, '')) }
}

const backendTls = (validation: Fields, more: Fields = {}) => ({
  apiVersion: `${group}/v1`,
  kind: 'BackendTLSPolicy',
  metadata: { name: 'secure' },
  spec: {
    targetRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'app' }],
    validation: { hostname: 'app.example', ...validation },
    ...more,
  },
})

const served = [
  staticBackend('app', 8081),
  route({ backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'app' }] }),
]

describe('sluice validate', () => {
  it.each<[string, Fields[], string]>([
    [
      'a filter at a backend that does not support it',
      [
        edge,
        route({
          backendRefs: [
            {
              name: 'nowhere',
              port: 80,
              filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: 'a.example' } }],
            },
          ],
        }),
      ],
      'HTTPRoute default/app: status.parents[Gateway edge].Accepted: spec.rules[0].backendRefs.filters: RequestRedirect is not supported here',
    ],
    [
      'a rewrite to an invalid path in one of two rules',
      [
        edge,
        httpRoute('app', {
          rules: [
            toNowhere,
            {
              ...toNowhere,
              filters: [
                {
                  type: 'URLRewrite',
                  urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath: '/a?b' } },
                },
              ],
            },
          ],
        }),
      ],
      'HTTPRoute default/app: status.parents[Gateway edge].PartiallyInvalid: spec.rules[1].filters[0].urlRewrite.path.replaceFullPath: ',
    ],
    [
      'a section of a Gateway that does not exist',
      [edge, route(toNowhere, { parentRefs: [{ name: 'edge', sectionName: 'https' }] })],
      'HTTPRoute default/app: status.parents[Gateway edge#https].Accepted: the parent has no listener named https',
    ],
    [
      'conflicting listeners of a Gateway',
      [
        listeners(
          { name: 'web', port: 80, protocol: 'HTTP' },
          { name: 'raw', port: 80, protocol: 'TCP' },
        ),
      ],
      'Gateway default/edge: status.listeners[web].Accepted: port 80 is also asked for with protocol TCP',
    ],
    [
      'a listener with an unknown protocol',
      [
        listeners(
          { name: 'web', port: 80, protocol: 'HTTP' },
          { name: 'odd', port: 81, protocol: 'example.com/odd' },
        ),
      ],
      'Gateway default/edge: status.listeners[odd].Accepted: protocol example.com/odd is not supported',
    ],
    [
      'a policy on a listener that does not exist',
      [
        edge,
        {
          ...policy('slow', 'Gateway/edge', { traffic: { timeouts: { request: '5s' } } }),
          spec: {
            targetRefs: [{ group, kind: 'Gateway', name: 'edge', sectionName: 'https' }],
            traffic: { timeouts: { request: '5s' } },
          },
        },
      ],
      'GatewayPolicy default/slow: status.Attached: Gateway default/edge has no listener https',
    ],
    [
      'certificate authorities of a BackendTLSPolicy in an unsupported kind',
      [
        edge,
        ...served,
        backendTls({ caCertificateRefs: [{ group: '', kind: 'Secret', name: 'authorities' }] }),
      ],
      'BackendTLSPolicy default/secure: status.ancestors[Gateway default/edge].Accepted: spec.validation.caCertificateRefs[0]: Secret of group "" is not supported',
    ],
    [
      'unknown options of a BackendTLSPolicy',
      [
        edge,
        ...served,
        backendTls({ wellKnownCACertificates: 'System' }, { options: { 'example.com/a': 'b' } }),
      ],
      'BackendTLSPolicy default/secure: status.ancestors[Gateway default/edge].Accepted: spec.options are not supported: example.com/a',
    ],
    [
      'parameters of a Gateway of the wrong kind',
      [
        gateway(8080, {
          infrastructure: { parametersRef: { group: '', kind: 'ConfigMap', name: 'a' } },
        }),
      ],
      'Gateway default/edge: status.Accepted: parametersRef must name a GatewayParameters',
    ],
    [
      'a missing entry of a Secret',
      [
        edge,
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'users' }, stringData: { a: 'b' } },
        policy('login', 'Gateway/edge', {
          traffic: { basicAuthentication: { secretRef: { name: 'users' } } },
        }),
      ],
      'GatewayPolicy default/login: status.Accepted: spec.traffic.basicAuthentication.secretRef: Secret default/users has no entry .htaccess',
    ],
    [
      'a missing port of a Service',
      [
        edge,
        {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'app' },
          spec: { ports: [{ port: 80 }] },
        },
        route({ backendRefs: [{ name: 'app', port: 81 }] }),
      ],
      'HTTPRoute default/app: status.parents[Gateway edge].ResolvedRefs: Service default/app has no TCP port 81',
    ],
  ])('refuses %s, and reports object, condition, file and line', async (_, objects, problem) => {
    const { code, lines } = await run(...objects)
    expect(code).toBe(1)
    const matching = lines.filter((line) => line.includes(problem))
    expect(matching, lines.join('\n')).toEqual([expect.stringMatching(/^\/all\.yaml:\d+(:\d+)?: /)])
  })

  it.each<[string, Fields[]]>([
    ['a Gateway', [route(toNowhere)]],
    ['a Service', [edge, route(toNowhere)]],
    ['a ReferenceGrant', [edge, route({ backendRefs: [{ name: 'a', namespace: 'b', port: 80 }] })]],
    [
      'a Secret with a certificate',
      [
        listeners({
          name: 'tls',
          port: 443,
          protocol: 'HTTPS',
          tls: { certificateRefs: [{ name: 'certificate' }] },
        }),
      ],
    ],
    [
      'Secrets and ConfigMaps of a policy',
      [
        edge,
        policy('login', 'Gateway/edge', {
          traffic: {
            apiKeyAuthentication: { secretSelector: { matchLabels: { a: 'b' } } },
            extAuth: { backendRef: { name: 'judge', port: 80 }, grpc: {} },
          },
        }),
        policy('verify', 'Gateway/edge', {
          backend: { tls: { caCertificateRefs: [{ name: 'authorities' }] } },
        }),
      ],
    ],
    [
      'a backend that serves keys',
      [
        edge,
        policy('tokens', 'Gateway/edge', {
          traffic: {
            jwtAuthentication: {
              providers: ['a', 'b'].map((issuer) => ({
                issuer,
                jwks: { remote: { jwksPath: '/keys', backendRef: { name: issuer, port: 80 } } },
              })),
            },
          },
        }),
      ],
    ],
    ['a target', [policy('slow', 'HTTPRoute/app', { traffic: { timeouts: { request: '5s' } } })]],
    [
      'parameters',
      [
        gateway(8080, {
          infrastructure: {
            parametersRef: { group: 'sluice.dev', kind: 'GatewayParameters', name: 'a' },
          },
        }),
      ],
    ],
  ])('accepts objects that refer to missing objects: %s', async (_, objects) => {
    expect(await run(...objects)).toEqual({ code: 0, lines: [] })
  })

  it('reports an unsupported reference but not a missing one of the same object', async () => {
    const { code, lines } = await run(
      edge,
      route({
        backendRefs: [
          { name: 'nowhere', port: 80 },
          { kind: 'Odd', name: 'a', port: 80 },
        ],
      }),
    )
    expect(code).toBe(1)
    expect(lines).toEqual([
      expect.stringContaining('backendRef to Odd of group "" is not supported'),
    ])
  })

  it('reports an invalid expression once, with its position', async () => {
    const { code, lines } = await run(
      edge,
      policy('rules', 'Gateway/edge', {
        traffic: { authorization: { policy: { matchExpressions: ['request.path =='] } } },
      }),
    )
    expect(code).toBe(1)
    expect(lines).toEqual([
      expect.stringMatching(
        /^\/all\.yaml:\d+:\d+: .* spec\.traffic\.authorization\.policy\.matchExpressions\[0\]: /,
      ),
    ])
  })

  it('reports problems from conditions as JSON, without internal fields', async () => {
    const tls = { name: 'odd', port: 81, protocol: 'example.com/odd' }
    writeFileSync(file, manifest(listeners(tls), route(toNowhere)))
    const { code, stdout } = await sluice('validate', '-f', file, '-o', 'json')
    expect(code).toBe(1)
    const { objects } = JSON.parse(stdout)
    expect(objects).toMatchObject([
      {
        kind: 'Gateway',
        errors: [
          {
            path: 'status.listeners[odd].Accepted',
            message: expect.stringContaining('protocol example.com/odd is not supported'),
            file,
            line: 1,
          },
        ],
      },
      { kind: 'HTTPRoute', errors: [{ path: 'status.parents[Gateway edge].Accepted' }] },
    ])
    expect(stdout).not.toContain('"own"')
  })
})

describe('sluice validate of a backend with several providers', () => {
  const guard = { regex: { action: 'Reject', matches: ['secret'] } }
  const provider = (name: string, ai?: Fields) => ({
    name,
    vendorA: { model: 'm' },
    ...(ai && { policies: { ai } }),
  })
  const validated = async (...providers: Fields[]) => {
    const promptGuard = { request: [guard], response: [guard] }
    const backend = {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayBackend',
      metadata: { name: 'models' },
      spec: { ai: { groups: [{ providers }] }, policies: { ai: { promptGuard } } },
    }
    writeFileSync(file, manifest(backend))
    const { exitCode, text } = await validate({ file: [file], output: 'text' }, () => undefined)
    return { exitCode, lines: text().map((line) => line.replace(folder, '')) }
  }

  it('warns of a provider whose settings leave out the guards of the backend', async () => {
    const aliases = { modelAliases: { small: 'm' } }
    const own = { promptGuard: { request: [guard] } }
    const found = await validated(provider('a', aliases), provider('b', own), provider('c'))
    const place = /^\/all\.yaml:\d+:\d+: warning: GatewayBackend default\/models: /
    expect(found).toEqual({
      exitCode: 0,
      lines: [expect.stringMatching(place), expect.stringMatching(place)],
    })
    const what = 'replaces spec.policies.ai for this provider, including its'
    const path = (at: number) => `spec.ai.groups[0].providers[${at}].policies.ai`
    expect(found.lines[0]).toContain(
      `${path(0)}: ${what} promptGuard.request and promptGuard.response; repeat the guards here`,
    )
    expect(found.lines[1]).toContain(`${path(1)}: ${what} promptGuard.response;`)
  })

  it('does not warn if the provider has guards of its own on both sides', async () => {
    const promptGuard = { request: [guard], response: [guard] }
    expect((await validated(provider('a', { promptGuard }))).lines).toEqual([])
  })
})
