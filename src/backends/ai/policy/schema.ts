/** `backend.ai`: what happens to requests and answers of language models. */
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
import { atLeastOneOf } from '../../../schema/rules.ts'
import { sectionField } from '../../../schema/section-field.ts'
import { shortString } from '../../../schema/strings.ts'
import { promptGuard } from './guards.ts'

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

const backendAi = object(
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
      'Endings of URL paths (* for any) and the format of their requests; the longest that fits counts. All are Completions where unset.',
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
export type BackendAiSpec = Infer<typeof backendAi>

export const backendAiField = sectionField({
  section: 'backend',
  field: 'ai',
  schema: backendAi,
  doc: 'Settings for language models; in force on backends of type ai only.',
})
