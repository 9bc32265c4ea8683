/** Schema of `backend.ai`, the settings for requests to language models and their responses. */

import type { RouteType } from '../../../../engines/messages/formats/index.ts'
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
} from '../../../../ground/schema/field.ts'
import { atLeastOneOf, exactlyOneOf } from '../../../../ground/schema/rules.ts'
import { httpHeaderMatch } from '../../../../ground/schema/shapes/headers.ts'
import { backendObjectReference } from '../../../../ground/schema/shapes/references.ts'
import {
  duration,
  durationOrZero,
  longString,
  shortString,
} from '../../../../ground/schema/strings.ts'
import { backendSimple } from '../../../policies/backend-simple/schema.ts'
import { serviceActions, serviceFields, streams } from '../guards/services/schema.ts'
import type { ScopeName } from './scope.ts'

const serviceNames = Object.keys(serviceFields)

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
    doc: 'Minimum number of tokens, estimated as words times 1.3. Shorter texts are not cached.',
    unit: 'tokens',
    default: 1024,
  }),
})

const answerCache = object('AnswerCache', {
  ttl: optional(duration, { doc: 'How long an answer is served again.', default: '5m' }),
  scope: optional(
    choice('AnswerCacheScope', {
      Principal: 'the client that got the answer',
      Shared: 'every client that the route admits',
    }),
    { doc: 'Who gets a stored answer.', default: 'Principal' },
  ),
  collapseTimeout: optional(durationOrZero, {
    doc: 'How long a request waits for the answer to an equal one that began before it; 0s: it does not wait. Streams never wait.',
    default: '10s',
  }),
  semantic: optional(
    object('SemanticCache', {
      backendRef: required(backendObjectReference, 'GatewayBackend of type ai for embeddings.'),
      model: required(text({ max: 1024 }), 'Embedding model.'),
      dimensions: optional(integer({ min: 1, max: 8192 }), 'Number of dimensions to request.'),
      threshold: optional(integer({ min: 50, max: 100 }), {
        doc: 'Minimum cosine similarity in percent.',
        default: 95,
      }),
      maxEntries: optional(integer({ min: 1, max: 10_000 }), {
        doc: 'Maximum number of compared requests.',
        default: 1000,
      }),
      timeout: optional(duration, { doc: 'Timeout of an embedding call.', default: '1s' }),
    }),
    'Also serves the answer to a similar request: only the last message of the user may differ.',
  ),
})
export type AnswerCacheSpec = Infer<typeof answerCache>

const customResponse = object(
  'CustomResponse',
  {
    message: optional(
      text({ max: 65_536 }),
      'Body. Default: The request was rejected due to inappropriate content; for response guards, The response was rejected due to inappropriate content.',
    ),
    statusCode: optional(integer({ min: 200, max: 599 }), { doc: 'Status code.', default: 403 }),
    showGuard: optional(boolean(), {
      doc: 'Adds the header x-sluice-guard with the name of the guard.',
      default: false,
    }),
  },
  { rules: [atLeastOneOf('message', 'statusCode', 'showGuard')] },
)

const regex = object('Regex', {
  matches: optional(list(longString, { max: 256 }), 'Patterns to find, in addition to builtins.'),
  builtins: optional(
    list(
      choice('BuiltIn', {
        Ssn: 'social security numbers',
        CreditCard: 'credit card numbers',
        PhoneNumber: 'phone numbers',
        Email: 'email addresses',
        CaSin: 'Canadian social insurance numbers',
        Iban: 'bank accounts',
        IpAddress: 'IP addresses',
        ApiKey: 'API keys, tokens, JWTs',
        PrivateKey: 'PEM private keys',
        VatNumber: 'EU and UK VAT numbers',
        DeTaxId: 'German tax ids',
        FrNir: 'French social security numbers',
        EsNif: 'Spanish DNI, NIE',
        ItFiscalCode: 'Italian codici fiscali',
        NlBsn: 'Dutch BSN',
        PlPesel: 'Polish PESEL',
        SePersonnummer: 'Swedish personal numbers',
        UkNino: 'UK national insurance numbers',
        UkNhs: 'UK NHS numbers',
        InAadhaar: 'Indian Aadhaar',
        BrCpf: 'Brazilian CPF',
        BrCnpj: 'Brazilian CNPJ',
        Secret: 'tokens that look random',
      }),
      { max: 64 },
    ),
    'Kinds of data to find, in addition to matches.',
  ),
  words: optional(
    list(text({ min: 1, max: 256 }), { max: 1024 }),
    'Words and names to find, as a whole and in upper or lower case.',
  ),
  wordsRef: optional(
    object(
      'WordsRef',
      {
        name: required(shortString, 'Name of a ConfigMap in the namespace of the policy.'),
        key: optional(shortString, { doc: 'Entry with one word per line.', default: 'words' }),
      },
      { refersTo: 'ConfigMap' },
    ),
    'Further words from a ConfigMap.',
  ),
  action: optional(
    choice('Action', {
      Mask: 'what matches is masked',
      Reject: 'a request that matches is refused; a response is masked in any case',
      Audit: 'nothing; matches are only recorded',
      Reversible: 'what matches in a request is masked, and restored in the response',
    }),
    { doc: 'What happens to a match.', default: 'Mask' },
  ),
})

const webhook = object('Webhook', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that decides.'),
  forwardHeaderMatches: optional(
    list(httpHeaderMatch, { max: 64 }),
    'Headers that are sent to the webhook: those of the request for request guards, of the response for response guards. If not set, none are sent.',
  ),
  streams,
  ...serviceActions,
})

const moderation = object('VendorAModeration', {
  model: optional(text({ max: 1024 }), 'Moderation model.'),
  policies: optional(backendSimple, 'Settings of the connection to the moderation endpoint.'),
  ...serviceActions,
})

const scopeName = choice('GuardScope', {
  SystemPrompt: 'system prompts',
  Messages: 'texts of users and models',
  ToolDefinition: 'tools and schemas',
  ToolInput: 'input of tools',
  ToolOutput: 'results of tools',
  Reasoning: 'reasoning',
  Documents: 'documents, citations',
  FileNames: 'file names',
  Arguments: 'MCP: arguments',
  Results: 'MCP: results',
  Resources: 'MCP: resources',
  Prompts: 'MCP: prompts',
  Definitions: 'MCP: listed items, instructions',
} satisfies Readonly<Record<ScopeName, string>>)

/** The settings of every guard. */
const guardSettings = {
  name: optional(shortString, 'Name in records and in the header of a refusal.'),
  percent: optional(
    integer({ min: 1, max: 100 }),
    'Percentage of the messages that an audit reads; all if not set.',
  ),
  response: optional(customResponse, 'Response to refused requests.'),
} as const

const common = {
  scope: optional(
    list(scopeName, { min: 1, max: 16 }),
    'What the guard reads. If not set, all but ToolDefinition, ToolInput, Reasoning and Definitions.',
  ),
  ...guardSettings,
} as const

/** What guards of all messages can set, with the ways to find something. */
export const guardFields = {
  ...guardSettings,
  regex: optional(regex, 'Finds patterns, and masks or refuses what matches.'),
  webhook: optional(webhook, 'Asks a service.'),
  ...serviceFields,
} as const
/** The fields of a guard of which one must be set. */
export const guardKinds = ['regex', 'webhook', ...serviceNames] as const

const requestGuard = object(
  'PromptguardRequest',
  {
    ...common,
    regex: optional(regex, 'Finds patterns, and masks or refuses what matches.'),
    webhook: optional(webhook, 'Asks a service.'),
    vendorAModeration: optional(moderation, 'Asks the moderation endpoint of vendorA.'),
    ...serviceFields,
  },
  { rules: [exactlyOneOf('regex', 'webhook', 'vendorAModeration', ...serviceNames)] },
)

const responseGuard = object(
  'PromptguardResponse',
  {
    ...common,
    regex: optional(regex, 'Finds patterns and masks what matches.'),
    webhook: optional(webhook, 'Asks a service.'),
    ...serviceFields,
  },
  { rules: [exactlyOneOf(...guardKinds)] },
)

export const promptGuard = object(
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
  Passthrough: 'forwarded unchanged, without processing',
  Responses: 'responses (/v1/responses)',
  VendorCTokenCount: 'token counts of vendorC (/v1/messages/count_tokens)',
  Embeddings: 'embeddings (/v1/embeddings)',
  GenerateContent: 'content of Gemini (models/{model}:generateContent, :streamGenerateContent)',
  GeminiCountTokens: 'token counts of Gemini (models/{model}:countTokens)',
  EmbedContent: 'an embedding of Gemini (models/{model}:embedContent)',
  BatchEmbedContents: 'several embeddings of Gemini (models/{model}:batchEmbedContents)',
  Converse: 'Converse of Bedrock (/model/{id}/converse, /converse-stream)',
  InvokeModel:
    'messages of vendorC in InvokeModel of Bedrock (/model/{id}/invoke, /invoke-with-response-stream)',
  TextCompletions: 'text completions (/v1/completions)',
  Rerank: 'rerank of Cohere, Jina and vLLM (/v2/rerank, /v1/rerank)',
  Images: 'images by a prompt (/v1/images/generations)',
  Speech: 'speech (/v1/audio/speech)',
  Moderations: 'moderations (/v1/moderations)',
  ResponsesTokenCount: 'token counts of responses (/v1/responses/input_tokens)',
  ResponsesCompact: 'compacted responses (/v1/responses/compact)',
  Transcriptions: 'texts of audio files (/v1/audio/transcriptions)',
  Translations: 'texts of audio files in English (/v1/audio/translations)',
  ImageEdits: 'images from images and a prompt (/v1/images/edits)',
  ImageVariations: 'variations of an image (/v1/images/variations)',
  Conversations: 'stored conversations (/v1/conversations)',
  Files: 'stored files (/v1/files)',
  Batches: 'batches of requests (/v1/batches)',
  MessageBatches: 'batches of messages of vendorC (/v1/messages/batches)',
  Realtime: 'realtime sessions (/v1/realtime)',
} satisfies Readonly<Record<RouteType, string>>)

export const backendAiSchema = object(
  'BackendAI',
  {
    prompt: optional(promptEnrichment, 'Messages added to every chat request.'),
    promptGuard: optional(promptGuard, {
      doc: 'Checks the texts of requests and responses, and masks or refuses them.',
      security: true,
    }),
    defaults: optional(
      fieldDefaults,
      'Fields that are added to the request body if it does not have them.',
    ),
    overrides: optional(
      fieldDefaults,
      'Fields that are set in the request body, and replace those of the request.',
    ),
    modelAliases: optional(
      map(text({ max: 1024 }), { max: 64 }),
      'Names that clients use, and the models of the provider to which they refer.',
    ),
    promptCaching: optional(
      promptCaching,
      'Sets cache points for models of vendorF that support them.',
    ),
    cache: optional(
      answerCache,
      'Serves the stored answer if a client repeats a request. Not part of agentgateway.',
    ),
    routes: optional(
      map(routeType, { max: 256 }),
      'Endings of URL paths (* for any) and the format of their requests. The longest matching ending decides. If not set, the paths of vendors, such as /v1/messages, have their own formats, and requests to all other paths are Completions.',
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
        'cache',
        'routes',
      ),
    ],
  },
)
export type BackendAiSpec = Infer<typeof backendAiSchema>
