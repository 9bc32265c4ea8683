import { availabilityProblems, positionedText } from '../../../engines/cel/index.ts'
import { calledBackend, type References } from '../../../ground/model/references.ts'
import {
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
} from '../../../ground/schema/field.ts'
import { atLeastOneOf, exactlyOneOf } from '../../../ground/schema/rules.ts'
import { backendObjectReference } from '../../../ground/schema/shapes/references.ts'
import { celExpression, shortString, tinyString } from '../../../ground/schema/strings.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const localRateLimit = object(
  'LocalRateLimit',
  {
    requests: optional(integer({ min: 1 }), 'Requests per unit.'),
    tokens: optional(
      integer({ min: 1 }),
      'LLM tokens per unit, of prompt and answer. They are known after completion, so that only later requests are limited.',
    ),
    unit: required(
      choice('LocalRateLimitUnit', {
        Seconds: 'a second',
        Minutes: 'a minute',
        Hours: 'an hour',
        Days: '24 hours',
        Months: '30 days',
      }),
      'Length of the period.',
    ),
    burst: optional(integer({ min: 0 }), {
      doc: 'Number of requests or tokens that may exceed the rate at once.',
      default: 0,
    }),
    key: optional(
      celExpression,
      'Expression whose values are limited separately, such as `apiKey.id` or `identity.principal`. Requests without a value share one limit.',
    ),
  },
  { rules: [exactlyOneOf('requests', 'tokens')] },
)

const descriptorSchema = object('RateLimitDescriptor', {
  entries: required(
    list(
      object('RateLimitDescriptorEntry', {
        name: required(tinyString, 'Key of the entry.'),
        expression: required(celExpression, 'Value of the entry.'),
      }),
      { min: 1, max: 16 },
    ),
    'Key-value pairs that the server counts as one.',
  ),
  unit: optional(
    choice('RateLimitUnit', {
      Requests: 'each request costs one',
      Tokens: 'each request costs its LLM tokens',
    }),
    { doc: 'Whether the limit counts requests or tokens.', default: 'Requests' },
  ),
  cost: optional(
    celExpression,
    'Number that each request costs instead of one. A request for which it does not give a number gets 500. Only with unit Requests.',
  ),
  limitOverride: optional(
    celExpression,
    'Map that replaces the limit of the server, such as {"requestsPerUnit": 10, "unit": "minute"}. If it gives no such map, the limit of the server applies.',
  ),
})

const globalRateLimit = object('GlobalRateLimit', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that counts.'),
  domain: required(shortString, 'Domain that separates applications at the server.'),
  descriptors: required(
    list(descriptorSchema, { min: 1, max: 16 }),
    'Descriptors that are sent to the server.',
  ),
  failureMode: optional(
    choice('GlobalRateLimitFailureMode', {
      FailClosed: 'the request is refused with 500',
      FailOpen: 'the request passes uncounted, which is recorded',
    }),
    { doc: 'What happens if the server fails.', default: 'FailClosed' },
  ),
})

export const rateLimitSchema = object(
  'RateLimits',
  {
    local: optional(
      list(localRateLimit, { min: 1, max: 16 }),
      'Limits that each proxy instance counts separately.',
    ),
    global: optional(globalRateLimit, 'A limit that a rate limit server counts for all instances.'),
  },
  { rules: [atLeastOneOf('local', 'global')] },
)
export type RateLimitSpec = Infer<typeof rateLimitSchema>
type GlobalSpec = NonNullable<RateLimitSpec['global']>

const failsOpen = { failsOpen: true } as const

/** Compiles limits, without checks of their expressions. A server that does not exist is treated like one that fails. */
export function compileLimits({ local = [], global }: RateLimitSpec, references: References) {
  const limits = local.map(({ requests, tokens, unit, burst = 0, key }) => {
    const counts = tokens === undefined ? ('requests' as const) : ('tokens' as const)
    return { counts, rate: requests ?? tokens ?? 1, unit, burst, ...(key !== undefined && { key }) }
  })
  if (global === undefined) return { config: { local: limits }, problems: [] }
  const target = calledBackend(references, global.backendRef)
  if (typeof target === 'string') {
    return { problems: [{ path: 'global.backendRef', message: target }] }
  }
  const descriptors = global.descriptors.map(({ unit, ...descriptor }) => {
    const counts = unit === 'Tokens' ? ('tokens' as const) : ('requests' as const)
    return { counts, ...descriptor }
  })
  const { domain, failureMode } = global
  const shared = { target, domain, descriptors, ...(failureMode === 'FailOpen' && failsOpen) }
  return { config: { local: limits, global: shared }, problems: [] }
}

function compile(spec: RateLimitSpec, references: References) {
  const compiled = compileLimits(spec, references)
  const { local = [], global } = spec
  const problems: PolicyProblem[] = local.flatMap(({ key, tokens }, at) =>
    key === undefined || tokens !== undefined ? [] : earlyProblems(key, `local[${at}].key`),
  )
  if (compiled.config === undefined) return { problems: [...problems, ...compiled.problems] }
  if (global !== undefined) problems.push(...requestProblems(global))
  return { config: compiled.config, problems }
}

/** Returns the problems of descriptors that count requests and read what is known only of requests to models. */
function requestProblems({ descriptors }: GlobalSpec): PolicyProblem[] {
  return descriptors.flatMap(({ entries, unit, cost, limitOverride }, at) => {
    const path = `global.descriptors[${at}]`
    if (unit === 'Tokens') {
      const message = 'only with unit Requests: the tokens of a request are its cost'
      return cost === undefined ? [] : [{ path: `${path}.cost`, message }]
    }
    return [
      ...entries.flatMap(({ expression }, entry) =>
        earlyProblems(expression, `${path}.entries[${entry}].expression`),
      ),
      ...(cost === undefined ? [] : earlyProblems(cost, `${path}.cost`)),
      ...(limitOverride === undefined ? [] : earlyProblems(limitOverride, `${path}.limitOverride`)),
    ]
  })
}

/** Problems of an expression that is evaluated before the request to a model is read. */
function earlyProblems(expression: string, path: string): PolicyProblem[] {
  const known = availabilityProblems(expression, 'modelRequest')
  return availabilityProblems(expression, 'traffic')
    .filter(({ offset }) => known.every((one) => one.offset !== offset))
    .map((problem) => ({ path, message: positionedText(problem) }))
}

/** Limits requests and LLM tokens. */
export const rateLimit = definePolicy({
  section: 'traffic',
  field: 'rateLimit',
  schema: rateLimitSchema,
  doc: 'Limits requests or LLM tokens. Requests that exceed a limit get 429.',
  security: true,
  changesRequest: false,
  conditional: 'always one',
  // `compile` checks descriptors that count requests, for which less is known.
  expressions: [{ path: '', point: 'modelRequest' }],
  compile,
  apply: () => import('./apply.ts'),
})
