import {
  anything,
  choice,
  count,
  flag,
  integer,
  list,
  map,
  optional,
  record,
  type Shape,
  text,
  union,
} from '../../../base/shape.ts'
import type { DirectTarget } from '../../../model/resources.ts'
import { directTarget } from '../../../model/shapes.ts'
import { shape as auth } from '../../../policies/backend-simple/auth/config.ts'
import { shape as http } from '../../../policies/backend-simple/http/config.ts'
import { shape as tcp } from '../../../policies/backend-simple/tcp/config.ts'
import { shape as tls } from '../../../policies/backend-simple/tls/config.ts'
import type { CachingPolicy } from '../formats/converse/caching.ts'
import type { RegexGuardConfig } from '../guards/regex-guard.ts'
import type { Aliases } from '../request/aliases.ts'
import type { FieldValue } from '../request/body.ts'
import type { Enrichment } from '../request/enrichment.ts'
import type { Routes } from '../request/route-type.ts'

/** Version 1. `backend.ai` in the form that the proxy receives. */
export interface BackendAiConfig {
  readonly prompt?: Enrichment
  readonly requestGuards: readonly GuardConfig[]
  readonly responseGuards: readonly GuardConfig[]
  readonly defaults?: readonly FieldValue[]
  readonly overrides?: readonly FieldValue[]
  readonly modelAliases?: Aliases
  readonly caching?: CachingPolicy
  readonly routes?: Routes
}

/** How a refusal is answered. */
export interface Refusal {
  readonly status: number
  readonly message: string
}

export type GuardConfig = { readonly refusal: Refusal } & (
  | ({ readonly type: 'regex' } & RegexGuardConfig)
  | WebhookConfig
  | ModerationConfig
)

export interface WebhookConfig {
  readonly type: 'webhook'
  readonly target: DirectTarget
  readonly forward: readonly HeaderForward[]
}

/** Headers of the name are sent along where one of their values matches. */
export interface HeaderForward {
  readonly name: string
  readonly type: 'Exact' | 'RegularExpression'
  readonly value: string
}

export interface ModerationConfig {
  readonly type: 'moderation'
  readonly model?: string
  /** Compiled settings of the connection, by the fields of `backend`. */
  readonly policies: readonly { readonly field: string; readonly config: unknown }[]
}

const refusal: Shape<Refusal> = record({ status: integer(200, 599), message: text })

type GuardOf<Type> = Extract<GuardConfig, { readonly type: Type }>
type Connection = ModerationConfig['policies'][number]

const connection = (field: string, config: Shape<unknown>): Shape<Connection> =>
  record({ field: choice(field), config })

const guard: Shape<GuardConfig> = union<'type', GuardConfig>('type', {
  regex: record<GuardOf<'regex'>>({
    type: choice('regex'),
    refusal,
    matches: list(text),
    builtins: list(choice('Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin')),
    action: choice('Mask', 'Reject'),
  }),
  webhook: record<GuardOf<'webhook'>>({
    type: choice('webhook'),
    refusal,
    target: directTarget,
    forward: list(
      record<HeaderForward>({
        name: text,
        type: choice('Exact', 'RegularExpression'),
        value: text,
      }),
    ),
  }),
  moderation: record<GuardOf<'moderation'>>({
    type: choice('moderation'),
    refusal,
    model: optional(text),
    policies: list(
      union<'field', Connection>('field', {
        auth: connection('auth', auth),
        http: connection('http', http),
        tcp: connection('tcp', tcp),
        tls: connection('tls', tls),
      }),
    ),
  }),
})

const messages = list(
  record<NonNullable<Enrichment['prepend']>[number]>({ role: text, content: text }),
)
const values = list(record<FieldValue>({ field: text, value: anything }))
const routeTypes = [
  'Completions',
  'Messages',
  'Models',
  'Passthrough',
  'Responses',
  'VendorCTokenCount',
  'Embeddings',
  'Realtime',
] as const

export const shape: Shape<BackendAiConfig> = record({
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
})
