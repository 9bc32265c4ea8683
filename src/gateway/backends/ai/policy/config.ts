import { builtinNames } from '../../../../engines/core/index.ts'
import type { CachingPolicy } from '../../../../engines/messages/formats/converse/caching.ts'
import { routeTypes } from '../../../../engines/messages/formats/index.ts'
import type { Aliases, FieldValue } from '../../../../engines/messages/request/body.ts'
import type { Enrichment } from '../../../../engines/messages/request/outgoing.ts'
import {
  anything,
  choice,
  count,
  flag,
  type Infer,
  integer,
  list,
  map,
  optional,
  problemOf,
  record,
  type Shape,
  text,
  union,
  where,
} from '../../../../ground/base/shape.ts'
import type { DirectTarget } from '../../../../ground/model/resources.ts'
import { directTarget } from '../../../../ground/model/shapes.ts'
import { shape as auth } from '../../../policies/backend-simple/auth/apply.ts'
import { shape as http } from '../../../policies/backend-simple/http/apply.ts'
import { shape as tcp } from '../../../policies/backend-simple/tcp/apply.ts'
import { shape as tls } from '../../../policies/backend-simple/tls/apply.ts'
import { type ServiceName, serviceNames, serviceShapes } from '../guards/services/config.ts'
import type { Routes } from './route-types.ts'
import { type ScopeName, scopeNames } from './scope.ts'

/** `backend.ai` in the form that the proxy receives (version 1). */
export interface BackendAiConfig {
  readonly prompt?: Enrichment
  readonly requestGuards: readonly GuardConfig[]
  readonly responseGuards: readonly GuardConfig[]
  readonly defaults?: readonly FieldValue[]
  readonly overrides?: readonly FieldValue[]
  readonly modelAliases?: Aliases
  readonly caching?: CachingPolicy
  readonly routes?: Routes
  readonly cache?: CacheConfig
}

const semantic = record({
  /** The backend that makes embeddings. */
  target: directTarget,
  /** The embedding model. */
  model: text,
  dimensions: optional(integer(1, 8_192)),
  /** Minimum cosine similarity in percent. */
  threshold: integer(50, 100),
  /** Maximum number of requests with which one is compared. */
  maxEntries: integer(1, 10_000),
  timeoutMs: integer(1, Number.MAX_SAFE_INTEGER),
})
/** How answers to similar requests are found. */
export type SemanticConfig = Infer<typeof semantic>

const cache = record({
  ttlMs: integer(1, Number.MAX_SAFE_INTEGER),
  scope: choice('Principal', 'Shared'),
  /** How long a request waits for the answer to an equal one; 0 or omitted if it does not wait. */
  collapseMs: optional(integer(0, Number.MAX_SAFE_INTEGER)),
  semantic: optional(semantic),
})
/** Which answers are served again, and to whom. */
export type CacheConfig = Infer<typeof cache>

export type GuardConfig = RegexConfig | WebhookConfig | ServiceConfig

/** The response to the client if a guard rejects a message. */
const refusal = record({
  status: integer(200, 599),
  message: text,
  /** Whether the client gets the name of the guard in a header. */
  showsGuard: optional(flag),
})
type Refusal = Infer<typeof refusal>

/** The settings of every guard. */
const settings = {
  refusal,
  /** Name in records, metrics and, if configured, in the header of a refusal. */
  name: optional(text),
  /** Whether the guard only reports what it would have done. */
  isAudit: optional(flag),
  /** Whether messages pass if the guard fails. */
  failsOpen: optional(flag),
  /** Percentage of the messages that an audit reads; all if omitted. */
  percent: optional(integer(1, 100)),
  /** Names of the places that the guard reads; the usual ones if omitted. */
  scope: optional(list(choice(...scopeNames))),
} as const

export interface GuardSettings {
  readonly refusal: Refusal
  readonly name?: string | undefined
  readonly isAudit?: boolean | undefined
  readonly failsOpen?: boolean | undefined
  readonly percent?: number | undefined
  readonly scope?: readonly ScopeName[] | undefined
}

const regex = record({
  type: choice('regex'),
  ...settings,
  matches: list(text),
  builtins: list(choice(...builtinNames)),
  words: optional(list(text)),
  action: choice('Mask', 'Reject', 'Reversible'),
})
type RegexConfig = Infer<typeof regex>

/** Forwards all values of a header if one of them matches. */
const headerForward = record({
  name: text,
  type: choice('Exact', 'RegularExpression'),
  value: text,
})
export type HeaderForward = Infer<typeof headerForward>

const webhook = record({
  type: choice('webhook'),
  ...settings,
  target: directTarget,
  forward: list(headerForward),
  /** Whether streams are checked as a whole instead of in windows. */
  holdsStreams: optional(flag),
})
export type WebhookConfig = Infer<typeof webhook>

export interface ServiceConfig extends GuardSettings {
  readonly type: 'service'
  readonly service: ServiceName
  /** The settings of the service. */
  readonly config: unknown
  /** The backend to ask; undefined for the host of the vendor. */
  readonly target?: DirectTarget | undefined
  /** Whether streams are checked as a whole instead of in windows. */
  readonly holdsStreams?: boolean | undefined
  /** Compiled policies of the connection to the host, by their fields in `backend`. */
  readonly policies: readonly Connection[]
}

interface Connection {
  readonly field: string
  readonly config: unknown
}

const connection = (field: string, config: Shape<unknown>): Shape<Connection> =>
  record({ field: choice(field), config })

const policies = list(
  union<'field', Connection>('field', {
    auth: connection('auth', auth),
    http: connection('http', http),
    tcp: connection('tcp', tcp),
    tls: connection('tls', tls),
  }),
)

const service = where(
  record<ServiceConfig>({
    type: choice('service'),
    service: choice(...serviceNames),
    ...settings,
    config: anything,
    target: optional(directTarget),
    holdsStreams: optional(flag),
    policies,
  }),
  'the settings of a guard service',
  ({ service: name, config }) => problemOf(serviceShapes[name], config) === undefined,
)

export const guard: Shape<GuardConfig> = union('type', { regex, webhook, service })

const messages = list(record({ role: text, content: text }))
const values = list(record<FieldValue>({ field: text, value: anything }))
export const shape = record<BackendAiConfig>({
  prompt: optional(record<Enrichment>({ prepend: optional(messages), append: optional(messages) })),
  requestGuards: list(guard),
  responseGuards: list(guard),
  defaults: optional(values),
  overrides: optional(values),
  modelAliases: optional(map(text)),
  caching: optional(
    record<CachingPolicy>({
      cacheSystem: flag,
      cacheMessages: flag,
      cacheTools: flag,
      minTokens: count,
    }),
  ),
  routes: optional(map(choice(...routeTypes))),
  cache: optional(cache),
})
