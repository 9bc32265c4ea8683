/** Every shared string type and every limit that is a bound of the schema. */
import { backendPlace, type CaseGroup, type Place, place, policyPlace } from './case.ts'

/** A value as large as `size`: a number, a text of that length, a list of that many items. */
type OfSize = (size: number) => unknown

const number: OfSize = (size) => size
const letters = (size: number): string => 'a'.repeat(Math.max(size, 0))
const list = (item: (index: number) => unknown): OfSize => {
  return (size) => Array.from({ length: size }, (_, index) => item(index))
}
const map = (value: unknown): OfSize => {
  return (size) =>
    Object.fromEntries(Array.from({ length: size }, (_, index) => [`k${index}`, value]))
}

interface Bounds {
  readonly at: Place
  readonly of: OfSize
  readonly min?: number
  readonly max?: number
}

/** Both bounds are accepted; one less and one more are refused. */
function bounded(id: string, ...all: readonly Bounds[]): CaseGroup {
  const cases = all.flatMap(({ at, of, min, max }) => {
    const accepted = [min, max].flatMap((size) => (size === undefined ? [] : [size]))
    const refused = [
      ...(min === undefined ? [] : [min - 1]),
      ...(max === undefined ? [] : [max + 1]),
    ]
    const written = (size: number) => `${at.path} of size ${size}`
    return [
      ...accepted.map((size) => ({
        written: written(size),
        kind: at.kind,
        spec: at.spec(of(size)),
      })),
      ...refused.map((size) => ({
        written: written(size),
        kind: at.kind,
        spec: at.spec(of(size)),
        refusedAt: at.path,
      })),
    ]
  })
  return { id, cases }
}

/** These values are accepted and those are refused. */
function formed(
  id: string,
  at: Place,
  accepted: readonly unknown[],
  refused: readonly unknown[],
): CaseGroup {
  const written = (value: unknown) => `${at.path} ${JSON.stringify(value)}`
  return {
    id,
    cases: [
      ...accepted.map((value) => ({
        written: written(value),
        kind: at.kind,
        spec: at.spec(value),
      })),
      ...refused.map((value) => ({
        written: written(value),
        kind: at.kind,
        spec: at.spec(value),
        refusedAt: at.path,
      })),
    ],
  }
}

const backendRef = { name: 'a', port: 80 }
const regex = { builtins: ['Email'] }
const port = { port: 80 }
const target = { group: '', kind: 'Service', name: 'a' }
const provider0 = 'spec.ai.groups[0].providers[0]'
const vendorA = { [provider0]: { vendorA: {} } }
const guards = 'spec.backend.ai.promptGuard'
const limit0 = 'spec.traffic.rateLimit.local[0]'
const global = 'spec.traffic.rateLimit.global'
const jwt0 = 'spec.traffic.jwtAuthentication.providers[0]'
const extAuth = { 'spec.traffic.extAuth': { backendRef } }
const jwtProvider = { issuer: 'i', jwks: { inline: '{}' } }

const hostNeighbours = {
  'spec.static': port,
  'spec.ai.provider': { vendorA: {} },
  'spec.mcp.targets[0]': { name: 'a' },
  'spec.mcp.targets[0].static': { host: 'a', ...port },
}

const transformation0 = policyPlace('spec.traffic.transformation.request.set[0].name', {
  'spec.traffic.transformation.request.set[0]': { value: "'a'" },
})
const sectionName = backendPlace(`${provider0}.name`, vendorA)
const duration = policyPlace('spec.frontend.tls.handshakeTimeout')
const sni = policyPlace('spec.backend.tls.sni')

const types: readonly CaseGroup[] = [
  bounded('type.ShortString', {
    at: backendPlace('spec.static.host', { 'spec.static': port }),
    of: letters,
    min: 1,
    max: 256,
  }),
  bounded('type.TinyString', {
    at: policyPlace('spec.frontend.tls.alpnProtocols[0]'),
    of: letters,
    min: 1,
    max: 64,
  }),
  bounded('type.LongString', {
    at: backendPlace('spec.ai.provider.path', { 'spec.ai.provider': { vendorA: {} } }),
    of: letters,
    min: 1,
    max: 1024,
  }),
  ...['spec.static.host', 'spec.ai.provider.host', 'spec.mcp.targets[0].static.host'].map((path) =>
    formed(
      `form of ${path}`,
      backendPlace(path, hostNeighbours),
      ['A_b.', 'bücher.test', '192.0.2.1', '::1', '[::1]', 'fe80::1%eth0', '::ffff:192.0.2.1'],
      [
        'http://a',
        'a:80',
        'a/b',
        '//a',
        '[::1]:80',
        '[::1',
        'u@a',
        'a?b',
        'a b',
        ' a',
        'a\\b',
        'a:b:80:x',
      ],
    ),
  ),
  formed(
    'form of spec.ai.provider.vendorB.endpoint',
    backendPlace('spec.ai.provider.vendorB.endpoint'),
    [
      'a.example',
      'https://a.example',
      'https://a.example/',
      'https://a.example/openai/v1',
      'a/b',
      '[::1]',
      'a.example:443',
      'https://[::1]:443/',
    ],
    ['a.example:x', 'https://', 'https://u@a', 'a b'],
  ),
  ...['spec.ai.provider.path', 'spec.mcp.targets[0].static.path'].map((path) =>
    formed(
      `form of ${path}`,
      backendPlace(path, hostNeighbours),
      ['/a', 'a', '/a?b=http://c', '/http://a'],
      ['http://a/b', 'wss://a', 'HTTPS://a'],
    ),
  ),
  bounded('bounds of CELExpression', {
    at: policyPlace('spec.frontend.accessLog.filter'),
    of: letters,
    min: 1,
    max: 16_384,
  }),
  bounded('type.SNI', { at: sni, of: letters, min: 1, max: 253 }),
  formed(
    'type.SNI',
    sni,
    ['a', 'a.example', 'a-b.c1', '1.a'],
    ['A.example', '-a', 'a-', 'a..b', 'a.-b', '.a', 'a.', 'a_b', '*.a', 'a b'],
  ),
  bounded('type.HeaderName', { at: transformation0, of: letters, min: 1, max: 256 }),
  formed(
    'type.HeaderName',
    transformation0,
    ['x-a', 'X_A', ':path', "!#$%&'*+-.^_`|~09"],
    ['x a', 'x:a', 'x(a)', 'x\ta', '', ':', 'é'],
  ),
  bounded('type.SectionName', { at: sectionName, of: letters, min: 1, max: 253 }),
  formed(
    'type.SectionName',
    sectionName,
    ['a', 'a.b', 'http-1', '8080'],
    ['A', 'a_b', '-a', 'a-', '.a', 'a..b', 'a/b'],
  ),
  formed(
    'type.Duration',
    duration,
    ['15s', '180s', '5m', '1h30m', '1h1m1s1ms', '99999h', '500ms'],
    ['10 minutes', '15', 's', '1.5s', '-1s', '1d', '100000s', '1h1m1s1ms1s', '', '15S', ' 15s'],
  ),
]

// Each row that is nothing but a bound. The rows whose default matters are shown by what the
// proxy does; their bounds stand below without being the whole of the row.
const limits: readonly CaseGroup[] = [
  bounded(
    'limit.prompt-guards',
    { at: policyPlace(`${guards}.request`), of: list(() => ({ regex })), min: 1, max: 8 },
    { at: policyPlace(`${guards}.response`), of: list(() => ({ regex })), min: 1, max: 8 },
  ),
  bounded(
    'limit.provider-groups-and-providers',
    {
      at: backendPlace('spec.ai.groups'),
      of: list((index) => ({ providers: [{ name: `p${index}`, vendorA: {} }] })),
      min: 1,
      max: 32,
    },
    {
      at: backendPlace('spec.ai.groups[0].providers'),
      of: list((index) => ({ name: `p${index}`, vendorA: {} })),
      min: 1,
      max: 32,
    },
  ),
  bounded('limit.mcp-targets', {
    at: backendPlace('spec.mcp.targets'),
    of: list((index) => ({ name: `t${index}`, static: { host: 'a.example', port: 80 } })),
    min: 1,
    max: 32,
  }),
  bounded(
    'limit.policy-targets',
    {
      at: place('GatewayPolicy', 'spec.targetRefs'),
      of: list((index) => ({ ...target, name: `s${index}` })),
      min: 1,
      max: 16,
    },
    {
      at: place('GatewayPolicy', 'spec.targetSelectors'),
      of: list((index) => ({ group: '', kind: 'Service', matchLabels: { a: `${index}` } })),
      min: 1,
      max: 16,
    },
  ),
  bounded('limit.direct-response-body', {
    at: policyPlace('spec.traffic.directResponse.body', {
      'spec.traffic.directResponse': { status: 200 },
    }),
    of: letters,
    min: 1,
    max: 4096,
  }),
  bounded(
    'limit.jwt-providers-audiences',
    {
      at: policyPlace('spec.traffic.jwtAuthentication.providers'),
      of: list((index) => ({ ...jwtProvider, issuer: `i${index}` })),
      min: 1,
      max: 64,
    },
    {
      at: policyPlace(`${jwt0}.audiences`, { [jwt0]: jwtProvider }),
      of: list((index) => `a${index}`),
      min: 1,
      max: 64,
    },
    {
      at: policyPlace(`${jwt0}.jwks.inline`, { [jwt0]: { issuer: 'i' } }),
      of: letters,
      min: 2,
      max: 65_536,
    },
  ),
  bounded(
    'limit.defaults-and-overrides',
    {
      at: policyPlace('spec.backend.ai.defaults'),
      of: list((index) => ({ field: `f${index}`, value: index })),
      min: 1,
      max: 64,
    },
    {
      at: policyPlace('spec.backend.ai.overrides'),
      of: list((index) => ({ field: `f${index}`, value: { a: [index] } })),
      min: 1,
      max: 64,
    },
    { at: policyPlace('spec.backend.ai.modelAliases'), of: map('m'), max: 64 },
  ),
  bounded(
    'limit.extra-auth-headers-and-maps',
    ...['contextExtensions', 'requestMetadata'].map((field) => ({
      at: policyPlace(`spec.traffic.extAuth.grpc.${field}`, extAuth),
      of: map('true'),
      max: 64,
    })),
    ...['allowedRequestHeaders', 'allowedResponseHeaders'].map((field) => ({
      at: policyPlace(`spec.traffic.extAuth.http.${field}`, extAuth),
      of: list((index) => `x-${index}`),
      max: 64,
    })),
    ...['addRequestHeaders', 'responseMetadata'].map((field) => ({
      at: policyPlace(`spec.traffic.extAuth.http.${field}`, extAuth),
      of: map('true'),
      max: 64,
    })),
  ),
  bounded('limit.shutdown-min-and-max', {
    at: place('GatewayParameters', 'spec.shutdown.min', { 'spec.shutdown': { max: 31_536_000 } }),
    of: number,
    min: 0,
  }),
  // Below 0 the server complains of min, too, which is then greater.
  formed(
    'limit.shutdown-min-and-max',
    place('GatewayParameters', 'spec.shutdown.max', { 'spec.shutdown': { min: 0 } }),
    [0, 31_536_000],
    [31_536_001],
  ),
]

const partsOfLimits: readonly CaseGroup[] = [
  bounded(
    'bounds of rate limits',
    { at: policyPlace(`${limit0}.requests`, { [limit0]: { unit: 'Hours' } }), of: number, min: 1 },
    { at: policyPlace(`${limit0}.tokens`, { [limit0]: { unit: 'Hours' } }), of: number, min: 1 },
    {
      at: policyPlace('spec.traffic.rateLimit.local'),
      of: list(() => ({ requests: 1, unit: 'Minutes' })),
      min: 1,
      max: 16,
    },
    {
      at: policyPlace(`${global}.descriptors`, { [global]: { backendRef, domain: 'd' } }),
      of: list(() => ({ entries: [{ name: 'a', expression: 'true' }] })),
      min: 1,
      max: 16,
    },
    {
      at: policyPlace(`${global}.descriptors[0].entries`, {
        [global]: { backendRef, domain: 'd' },
      }),
      of: list((index) => ({ name: `e${index}`, expression: 'true' })),
      min: 1,
      max: 16,
    },
  ),
  formed(
    'units of rate limits',
    policyPlace(`${limit0}.unit`, { [limit0]: { requests: 1 } }),
    ['Seconds', 'Minutes', 'Hours'],
    ['Weeks', 'seconds', ''],
  ),
  formed(
    'numbers of bytes',
    policyPlace('spec.frontend.http.http2FrameSize'),
    [16_384, '16384', '16Ki', '0.5Mi', '+32k', '1E5', '.1M', '16383.5', '20000000m'],
    ['16383', '1Ki', '2Mi', '-1Mi', '16382.5', '1677215.1', '16KB', '16 Ki', '', '0x4000', true],
  ),
  bounded(
    'bounds of windows',
    { at: policyPlace('spec.frontend.http.http2WindowSize'), of: number, min: 1, max: 2 ** 31 - 1 },
    {
      at: policyPlace('spec.frontend.http.http2ConnectionWindowSize'),
      of: (size) => `${size}`,
      min: 1,
      max: 2 ** 31 - 1,
    },
    {
      at: policyPlace('spec.traffic.extAuth.forwardBody.maxSize', {
        'spec.traffic.extAuth': { backendRef, http: {} },
      }),
      of: (size) => `${size}000m`,
      min: 1,
      max: 2 ** 31 - 1,
    },
  ),
  bounded(
    'bounds of HTTP settings',
    { at: policyPlace('spec.frontend.http.maxBufferSize'), of: number, min: 1 },
    { at: policyPlace('spec.frontend.http.http1MaxHeaders'), of: number, min: 1, max: 4096 },
    {
      at: policyPlace('spec.frontend.http.http2FrameSize'),
      of: number,
      min: 16_384,
      max: 1_677_215,
    },
  ),
  bounded(
    'bounds of keepalive',
    { at: policyPlace('spec.frontend.tcp.keepalive.retries'), of: number, min: 1, max: 64 },
    { at: policyPlace('spec.backend.tcp.keepalive.retries'), of: number, min: 1, max: 64 },
  ),
]

export const boundCases: readonly CaseGroup[] = [...types, ...limits, ...partsOfLimits]
