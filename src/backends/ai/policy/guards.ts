import { backendSimple } from '../../../policies/backend-simple/schema.ts'
import {
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../schema/field.ts'
import { atLeastOneOf, exactlyOneOf } from '../../../schema/rules.ts'
import { httpHeaderMatch } from '../../../schema/shapes/headers.ts'
import { backendObjectReference } from '../../../schema/shapes/references.ts'
import { longString } from '../../../schema/strings.ts'

const customResponse = object(
  'CustomResponse',
  {
    message: optional(
      text({ max: 65_536 }),
      'Body. Default: The request was rejected due to inappropriate content; for response guards, The response was rejected due to inappropriate content.',
    ),
    statusCode: optional(integer({ min: 200, max: 599 }), { doc: 'Status code.', default: 403 }),
  },
  { rules: [atLeastOneOf('message', 'statusCode')] },
)

const regex = object('Regex', {
  matches: optional(
    list(longString, { max: 256 }),
    'Patterns that are looked for, beside builtins.',
  ),
  builtins: optional(
    list(
      choice('BuiltIn', {
        Ssn: 'social security numbers',
        CreditCard: 'credit card numbers',
        PhoneNumber: 'phone numbers',
        Email: 'email addresses',
        CaSin: 'Canadian social insurance numbers',
      }),
      { max: 64 },
    ),
    'Kinds of data that are looked for, beside matches.',
  ),
  action: optional(
    choice('Action', {
      Mask: 'what matches is masked',
      Reject: 'a request that matches is refused; a response is masked in any case',
    }),
    { doc: 'What happens to a match.', default: 'Mask' },
  ),
})

const webhook = object('Webhook', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that judges.'),
  forwardHeaderMatches: optional(
    list(httpHeaderMatch, { max: 64 }),
    'Headers that are sent along: of the request for request guards, of the response for response guards. None where unset.',
  ),
})

const moderation = object('VendorAModeration', {
  model: optional(text({ max: 1024 }), 'Moderation model.'),
  policies: optional(backendSimple, 'Settings of the connection to the moderation endpoint.'),
})

const response = optional(customResponse, 'Answer to what is refused.')

const requestGuard = object(
  'PromptguardRequest',
  {
    response,
    regex: optional(regex, 'Looks for patterns.'),
    webhook: optional(webhook, 'Asks a service.'),
    vendorAModeration: optional(moderation, 'Asks the moderation endpoint of vendorA.'),
  },
  { rules: [exactlyOneOf('regex', 'webhook', 'vendorAModeration')] },
)

const responseGuard = object(
  'PromptguardResponse',
  {
    response,
    regex: optional(regex, 'Looks for patterns; what matches is masked.'),
    webhook: optional(webhook, 'Asks a service.'),
  },
  { rules: [exactlyOneOf('regex', 'webhook')] },
)

export const promptGuard = object(
  'AIPromptGuard',
  {
    request: optional(list(requestGuard, { min: 1, max: 8 }), 'Guards of client requests.'),
    response: optional(list(responseGuard, { min: 1, max: 8 }), 'Guards of provider responses.'),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)
export type PromptGuardSpec = Infer<typeof promptGuard>
