import type { DirectTarget } from '../../model/resources.ts'
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
