import { parseDurationMs } from '../../../../ground/base/duration.ts'
import { type Infer, integer, object, optional, required } from '../../../../ground/schema/field.ts'
import { atLeastOneOf, rule } from '../../../../ground/schema/rules.ts'
import { celExpression, duration } from '../../../../ground/schema/strings.ts'
import { definePolicy } from '../../define.ts'
import { activeSchema, compileActive } from './active.ts'

interface Timed {
  readonly duration?: string
}

const minEvictionMs = 1_000
const defaultEvictionMs = 3_000

const eviction = object(
  'HealthEviction',
  {
    duration: optional(duration, {
      doc: 'Time for which an endpoint is ejected, at least 1s. It is multiplied by the number of ejections in a row, up to 5 minutes.',
      default: '3s',
    }),
    restoreHealth: optional(
      integer({ min: 0, max: 100 }),
      'Health of the endpoint in percent after the ejection. If not set, it is unchanged.',
    ),
    consecutiveFailures: optional(
      integer({ min: 1, max: 1_000_000 }),
      'Number of unhealthy responses in a row after which an endpoint is ejected.',
    ),
    healthThreshold: optional(
      integer({ min: 0, max: 100 }),
      'Health in percent below which an endpoint is ejected. Health is a moving average of the results of requests.',
    ),
  },
  {
    rules: [
      rule<Timed>({
        message: 'duration must be at least 1s',
        cel: "!has(self.duration) || duration(self.duration) >= duration('1s')",
        holds: ({ duration: text }) =>
          text === undefined || (parseDurationMs(text) ?? 0) >= minEvictionMs,
        at: 'duration',
      }),
    ],
  },
)

const schema = object(
  'BackendHealth',
  {
    unhealthyCondition: optional(
      celExpression,
      'Expression that is true if a response is unhealthy, such as response.code >= 500 || response.code == 429. Failed connections always are. If not set, responses with 5xx are.',
    ),
    eviction: optional(
      eviction,
      'When endpoints with unhealthy responses are ejected. If not set, they only get fewer requests. If neither consecutiveFailures nor healthThreshold is set, the first unhealthy response ejects. If all endpoints are ejected, they are used anyway.',
    ),
    panicThreshold: optional(
      integer({ min: 0, max: 100 }),
      'Percentage of usable endpoints below which requests go to all endpoints, also to ejected ones. If not set, they do only if none is usable.',
    ),
    slowStart: optional(
      object('SlowStart', {
        window: required(duration, 'Time after which an endpoint gets its full share of requests.'),
      }),
      'Gives fewer requests at first to endpoints that are new or return after an ejection.',
    ),
    active: optional(
      activeSchema,
      'Probes that each proxy sends to the endpoints of a Service or static backend. Endpoints that fail are not used while others are healthy.',
    ),
  },
  {
    rules: [
      atLeastOneOf('unhealthyCondition', 'eviction', 'panicThreshold', 'slowStart', 'active'),
    ],
  },
)

function compile(spec: Infer<typeof schema>) {
  const { unhealthyCondition, eviction: given, panicThreshold, slowStart } = spec
  const { duration: text, ...limits } = given ?? {}
  const active = spec.active && compileActive(spec.active)
  const durationMs = parseDurationMs(text) ?? defaultEvictionMs
  return {
    config: {
      ...(unhealthyCondition !== undefined && { unhealthyCondition }),
      ...(given !== undefined && { eviction: { ...limits, durationMs } }),
      ...(panicThreshold !== undefined && { panicPercent: panicThreshold }),
      ...(slowStart && { slowStartMs: parseDurationMs(slowStart.window) ?? 0 }),
      ...(active?.config && { active: active.config }),
    },
    problems: active?.problem === undefined ? [] : [active.problem],
  }
}

/** Decides which responses count against the health of an endpoint, and when it is ejected. */
export const backendHealth = definePolicy({
  section: 'backend',
  field: 'health',
  schema,
  doc: 'Health of the endpoints of the backend, in place of the usual rules. Retry-After of a failed response still ejects.',
  security: false,
  expressions: [{ path: 'unhealthyCondition', point: 'health' }],
  compile,
  apply: () => import('./apply.ts'),
})
