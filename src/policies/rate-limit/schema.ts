import {
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
} from '../../schema/field.ts'
import { atLeastOneOf, exactlyOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { backendObjectReference } from '../../schema/shapes/references.ts'
import { celExpression, shortString, tinyString } from '../../schema/strings.ts'

const localRateLimit = object(
  'LocalRateLimit',
  {
    requests: optional(integer({ min: 1 }), 'Requests per unit.'),
    tokens: optional(
      integer({ min: 1 }),
      'LLM tokens per unit, of prompt and answer; known after completion, so later requests are limited.',
    ),
    unit: required(
      choice('LocalRateLimitUnit', { Seconds: 'a second', Minutes: 'a minute', Hours: 'an hour' }),
      'Length of the period.',
    ),
    burst: optional(integer({ min: 0 }), {
      doc: 'How much may come at once on top of the rate.',
      default: 0,
    }),
  },
  { rules: [exactlyOneOf('requests', 'tokens')] },
)

const descriptor = object('RateLimitDescriptor', {
  entries: required(
    list(
      object('RateLimitDescriptorEntry', {
        name: required(tinyString, 'Key of the entry.'),
        expression: required(celExpression, 'Value of the entry.'),
      }),
      { min: 1, max: 16 },
    ),
    'Pairs that the server counts together.',
  ),
  unit: optional(
    choice('RateLimitUnit', {
      Requests: 'each request costs one',
      Tokens: 'each request costs its LLM tokens',
    }),
    { doc: 'What is counted.', default: 'Requests' },
  ),
})

const globalRateLimit = object('GlobalRateLimit', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that counts.'),
  domain: required(shortString, 'Keeps applications apart at the server.'),
  descriptors: required(list(descriptor, { min: 1, max: 16 }), 'What is counted.'),
})

const rateLimit = object(
  'RateLimits',
  {
    local: optional(
      list(localRateLimit, { min: 1, max: 16 }),
      'Limits that each proxy instance keeps by itself.',
    ),
    global: optional(globalRateLimit, 'A limit that a rate limit server keeps for all instances.'),
  },
  { rules: [atLeastOneOf('local', 'global')] },
)
export type RateLimitSpec = Infer<typeof rateLimit>

export const rateLimitField = sectionField({
  section: 'traffic',
  field: 'rateLimit',
  schema: rateLimit,
  doc: 'Limits requests or LLM tokens; what exceeds a limit is answered 429.',
})
