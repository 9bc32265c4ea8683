/** Required fields: each is left out of an object that is valid with it. */
import { backendPlace, type CaseGroup, type Place, place, policyPlace } from './case.ts'

const backendRef = { name: 'a', port: 80 }
const provider0 = 'spec.ai.groups[0].providers[0]'

/** A place, a valid value there, and which of its fields are required. */
const rows: readonly [Place, Readonly<Record<string, unknown>>, readonly string[]][] = [
  [backendPlace('spec.static'), { host: 'a', port: 80 }, ['host', 'port']],
  [backendPlace('spec.ai.provider.vendorB'), { endpoint: 'a' }, ['endpoint']],
  [
    backendPlace('spec.ai.provider.vendorE'),
    { projectId: 'p', region: 'global' },
    ['projectId', 'region'],
  ],
  [backendPlace(provider0), { name: 'a', vendorA: {} }, ['name']],
  [backendPlace('spec.mcp'), { targets: [{ name: 'a', selector: { services: {} } }] }, ['targets']],
  [backendPlace('spec.mcp.targets[0]'), { name: 'a', selector: { services: {} } }, ['name']],
  [
    place('GatewayPolicy', 'spec.targetRefs[0]'),
    { group: '', kind: 'Service', name: 'a' },
    ['group', 'kind', 'name'],
  ],
  [
    place('GatewayPolicy', 'spec.targetSelectors[0]'),
    { group: '', kind: 'Service', matchLabels: { a: 'b' } },
    ['group', 'kind', 'matchLabels'],
  ],
  [policyPlace('spec.frontend.tracing'), { backendRef }, ['backendRef']],
  [policyPlace('spec.frontend.accessLog.otlp'), { backendRef }, ['backendRef']],
  [policyPlace('spec.traffic.directResponse'), { status: 200 }, ['status']],
  [policyPlace('spec.traffic.hostRewrite'), { mode: 'Auto' }, ['mode']],
  [policyPlace('spec.traffic.extProc'), { backendRef }, ['backendRef']],
  [policyPlace('spec.traffic.extAuth'), { backendRef, http: {} }, ['backendRef']],
  [policyPlace('spec.traffic.rateLimit.local[0]'), { requests: 1, unit: 'Hours' }, ['unit']],
  [
    policyPlace('spec.traffic.rateLimit.global'),
    {
      backendRef,
      domain: 'd',
      descriptors: [{ entries: [{ name: 'a', expression: 'true' }] }],
    },
    ['backendRef', 'domain', 'descriptors'],
  ],
  [
    policyPlace('spec.traffic.authorization'),
    { policy: { matchExpressions: ['true'] } },
    ['policy'],
  ],
  [
    policyPlace('spec.traffic.jwtAuthentication'),
    { providers: [{ issuer: 'i', jwks: { inline: '{}' } }] },
    ['providers'],
  ],
  [
    policyPlace('spec.traffic.jwtAuthentication.providers[0]'),
    { issuer: 'i', jwks: { inline: '{}' } },
    ['issuer'],
  ],
  [
    policyPlace('spec.traffic.jwtAuthentication.providers[0].introspection', {
      'spec.traffic.jwtAuthentication.providers[0]': { issuer: 'i' },
    }),
    { path: '/introspect', backendRef, clientAuth: { clientId: 'a', secretRef: { name: 'a' } } },
    ['path', 'backendRef', 'clientAuth'],
  ],
  [
    policyPlace('spec.traffic.jwtAuthentication.providers[0].jwks.remote', {
      'spec.traffic.jwtAuthentication.providers[0]': { issuer: 'i' },
    }),
    { jwksPath: '/keys', backendRef },
    ['jwksPath', 'backendRef'],
  ],
  [place('GatewayParameters', 'spec.shutdown'), { min: 0, max: 1 }, ['min', 'max']],
  [place('GatewayParameters', 'spec.env[0]'), { name: 'A' }, ['name']],
]

export const requiredCases: CaseGroup = {
  id: 'rule.Required',
  shows: ['HostnameRewrite.mode'],
  cases: rows.flatMap(([at, value, names]) => [
    { written: `${at.path} with all of its required fields`, kind: at.kind, spec: at.spec(value) },
    ...names.map((name) => ({
      written: `${at.path} without ${name}`,
      kind: at.kind,
      spec: at.spec(Object.fromEntries(Object.entries(value).filter(([key]) => key !== name))),
      refusedAt: `${at.path}.${name}`,
    })),
  ]),
}
