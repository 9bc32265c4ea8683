/** Schema of `backend.ai`, the settings for requests to language models and their answers. */
import { backendSimple } from '../../../policies/backend-simple/schema.ts'
import {
  boolean,
  choice,
  type Infer,
  integer,
  json,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../schema/field.ts'
import { atLeastOneOf, exactlyOneOf } from '../../../schema/rules.ts'
import { httpHeaderMatch } from '../../../schema/shapes/headers.ts'
import { backendObjectReference } from '../../../schema/shapes/references.ts'
import { longString, shortString } from '../../../schema/strings.ts'

const message = object('Message', {
  role: required(
    text({ max: 256 }),
    'Role, such as SYSTEM or USER; the provider decides which exist.',
  ),
  content: required(text({ max: 262_144 }), 'Text of the message.'),
})

const messages = list(message, { max: 256 })

const promptEnrichment = object('AIPromptEnrichment', {
  prepend: optional(messages, "Messages before the request's own."),
  append: optional(messages, "Messages after the request's own."),
})

const fieldDefault = object('FieldDefault', {
  field: required(shortString, 'Key of the JSON request body.'),
  value: required(json(), 'Any JSON value.'),
})

const fieldDefaults = list(fieldDefault, { min: 1, max: 64 })

const promptCaching = object('PromptCachingConfig', {
  cacheSystem: optional(boolean(), {
    doc: 'Sets a cache point after all system messages.',
    default: true,
  }),
  cacheMessages: optional(boolean(), {
    doc: 'Caches all messages of the conversation.',
    default: true,
  }),
  cacheTools: optional(boolean(), {
    doc: 'Sets a cache point after all tool specifications.',
    default: false,
  }),
  minTokens: optional(integer({ min: 0 }), {
    doc: 'Estimate (words times 1.3) below which nothing is cached.',
    unit: 'tokens',
    default: 1024,
  }),
})

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
    'Headers that are sent along: of the request for request guards, of the response for response guards. None if not set.',
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

const promptGuard = object(
  'AIPromptGuard',
  {
    request: optional(list(requestGuard, { min: 1, max: 8 }), 'Guards of client requests.'),
    response: optional(list(responseGuard, { min: 1, max: 8 }), 'Guards of provider responses.'),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)

/** Format of the requests on a path. */
const routeType = choice('RouteType', {
  Completions: 'chat completions (/v1/chat/completions)',
  Messages: 'messages of vendorC (/v1/messages)',
  Models: 'the list of models (/v1/models)',
  Passthrough: 'sent on as it is, without LLM processing',
  Responses: 'responses (/v1/responses)',
  VendorCTokenCount: 'token counts of vendorC (/v1/messages/count_tokens)',
  Embeddings: 'embeddings (/v1/embeddings)',
  Realtime: 'realtime sessions (/v1/realtime)',
})
export type RouteType = Infer<typeof routeType>

export const backendAiSchema = object(
  'BackendAI',
  {
    prompt: optional(promptEnrichment, 'Messages added to every chat request.'),
    promptGuard: optional(promptGuard, {
      doc: 'Looks at what clients send and providers answer, and masks or refuses it.',
      security: true,
    }),
    defaults: optional(fieldDefaults, 'Fields of the request body, where the request has none.'),
    overrides: optional(fieldDefaults, 'Fields of the request body, whatever the request has.'),
    modelAliases: optional(
      map(text({ max: 1024 }), { max: 64 }),
      'Names that clients use, and the models they stand for at the provider.',
    ),
    promptCaching: optional(
      promptCaching,
      'Sets cache points for models of vendorF that know them.',
    ),
    routes: optional(
      map(routeType, { max: 256 }),
      'Endings of URL paths (* for any) and the format of their requests; the longest that fits counts. All are Completions if not set.',
    ),
  },
  {
    rules: [
      atLeastOneOf(
        'prompt',
        'promptGuard',
        'defaults',
        'overrides',
        'modelAliases',
        'promptCaching',
        'routes',
      ),
    ],
  },
)
export type BackendAiSpec = Infer<typeof backendAiSchema>
