/** What users write for active health checks, and what proxies receive. */
import { parseDurationMs } from '../../../../ground/base/duration.ts'
import {
  choice,
  type Infer,
  integer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../../ground/schema/rules.ts'
import { portNumber } from '../../../../ground/schema/shapes/references.ts'
import {
  duration,
  plainHeaderName,
  preciseHostname,
  shortString,
} from '../../../../ground/schema/strings.ts'
import type { PolicyProblem } from '../../define.ts'

const defaults = { intervalMs: 3_000, timeoutMs: 1_000, healthy: 1, unhealthy: 3 }
const minIntervalMs = 100
/** Results of a check that are older than some intervals are dropped after 15 minutes. */
const maxIntervalMs = 300_000

const headerValue = text({
  name: 'ProbeHeaderValue',
  max: 1024,
  pattern: '^[ -~]*$',
  expects: 'visible ASCII characters and spaces',
})

const httpProbe = object('HTTPProbe', {
  path: required(
    text({
      name: 'ProbePath',
      min: 1,
      max: 1024,
      pattern: '^/[!-~]*$',
      expects: 'a path that begins with /, without spaces',
    }),
    'Path and query.',
  ),
  hostname: optional(preciseHostname, 'Value of Host. If not set, that of the backend.'),
  method: optional(
    choice('ProbeMethod', { GET: 'GET', HEAD: 'HEAD', OPTIONS: 'OPTIONS', POST: 'POST' }),
    { doc: 'Method of the request.', default: 'GET' },
  ),
  expectedStatuses: optional(list(integer({ min: 200, max: 599 }), { max: 32, unique: 'value' }), {
    doc: 'Statuses of healthy endpoints.',
    default: [200],
  }),
  headers: optional(
    map(headerValue, { keys: plainHeaderName, max: 16 }),
    'Header fields of the request.',
  ),
})

const threshold = integer({ min: 1, max: 100 })

export const activeSchema = object(
  'ActiveHealthCheck',
  {
    http: optional(httpProbe, 'Sends an HTTP request.'),
    grpc: optional(
      object('GRPCProbe', {
        service: optional(shortString, 'Name of the service. If not set, the whole server.'),
      }),
      'Calls grpc.health.v1.Health/Check.',
    ),
    tcp: optional(object('TCPProbe', {}), 'Connects, with TLS if the backend has it.'),
    interval: optional(duration, {
      doc: 'Time between two probes of an endpoint, from 100ms to 5m, varied by a tenth.',
      default: '3s',
    }),
    timeout: optional(duration, {
      doc: 'Timeout of a probe, at most interval.',
      default: '1s',
    }),
    unhealthyThreshold: optional(threshold, {
      doc: 'Failures in a row after which an endpoint is not used.',
      default: defaults.unhealthy,
    }),
    healthyThreshold: optional(threshold, {
      doc: 'Successes in a row after which it is used again.',
      default: defaults.healthy,
    }),
    port: optional(portNumber, 'Port of the probes. If not set, that of the endpoint.'),
    initialState: optional(
      choice('InitialHealth', {
        Healthy: 'A new endpoint is used before its first result.',
        Unhealthy: 'It is used after a successful probe.',
      }),
      { doc: 'State of new endpoints.', default: 'Healthy' },
    ),
  },
  { rules: [exactlyOneOf('http', 'grpc', 'tcp')] },
)

type ActiveSpec = Infer<typeof activeSchema>

/** Returns the compiled form, or the problem because of which no probes are sent. */
export function compileActive(spec: ActiveSpec) {
  const intervalMs = parseDurationMs(spec.interval) ?? defaults.intervalMs
  const given = parseDurationMs(spec.timeout)
  const problem = timeProblem(intervalMs, given)
  if (problem !== undefined) return { problem }
  return {
    config: {
      probe: probeOf(spec),
      intervalMs,
      timeoutMs: given ?? Math.min(defaults.timeoutMs, intervalMs),
      unhealthyThreshold: spec.unhealthyThreshold ?? defaults.unhealthy,
      healthyThreshold: spec.healthyThreshold ?? defaults.healthy,
      ...(spec.port !== undefined && { port: spec.port }),
      ...(spec.initialState === 'Unhealthy' && { startsUnhealthy: true as const }),
    },
  }
}

function timeProblem(intervalMs: number, timeoutMs: number | undefined): PolicyProblem | undefined {
  const problem = (field: string, message: string) =>
    ({ path: `active.${field}`, message, partial: true }) as const
  if (intervalMs < minIntervalMs || intervalMs > maxIntervalMs) {
    return problem('interval', 'must be from 100ms to 5m; no probes are sent')
  }
  if ((timeoutMs ?? 0) > intervalMs) {
    return problem('timeout', 'must not be longer than interval; no probes are sent')
  }
  return undefined
}

function probeOf({ http, grpc }: ActiveSpec) {
  if (grpc !== undefined) return { type: 'grpc' as const, service: grpc.service ?? '' }
  if (http === undefined) return { type: 'tcp' as const }
  const { path, hostname, method = 'GET', expectedStatuses = [200], headers = {} } = http
  return {
    type: 'http' as const,
    method,
    path,
    ...(hostname !== undefined && { hostname }),
    statuses: expectedStatuses,
    headers,
  }
}
