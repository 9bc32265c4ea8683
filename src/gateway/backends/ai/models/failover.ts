/** Which failures lead to the next provider: the fields that users write, and the rules that proxies receive. */
import { parseDurationMs } from '../../../../ground/base/duration.ts'
import type { FailoverRules } from '../../../../ground/model/model-providers.ts'
import {
  boolean,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
} from '../../../../ground/schema/field.ts'
import { celExpression, duration, shortString } from '../../../../ground/schema/strings.ts'

export const failoverConditions = object('FailoverConditions', {
  statuses: optional(list(integer({ min: 400, max: 599 }), { max: 64 }), {
    doc: 'Statuses of responses. If a status is 401 or 403, providers with the same address are skipped. Default: 408, 429 and 500 to 599.',
  }),
  errorCodes: optional(
    list(shortString, { max: 64 }),
    'Codes and types of errors, such as insufficient_quota or overloaded_error.',
  ),
  contextExceeded: optional(boolean(), {
    doc: 'Whether a request that is too large for the context of the model goes to a model with a larger one. Models whose context the catalog does not know are tried, too.',
    default: false,
  }),
  contentFilter: optional(boolean(), {
    doc: 'Whether a request or a whole response that the filter of a provider refuses goes to a provider of another vendor.',
    default: false,
  }),
  modelNotFound: optional(boolean(), {
    doc: 'Whether a request goes to another provider if a provider does not have the model: it answers 404, or an error that says so.',
    default: false,
  }),
  firstTokenTimeout: optional(
    duration,
    'Maximum time from the start of an attempt to the first event of a streamed response.',
  ),
  idleTimeout: optional(
    duration,
    'Maximum time without a byte of a streamed response before its first event.',
  ),
  retryAfterOver: optional(
    duration,
    'If set, a response with status 429 leads to another provider only if it asks for a longer wait. Otherwise, the client gets it.',
  ),
})

export const sessionAffinity = object('ModelSessionAffinity', {
  source: required(
    celExpression,
    'Expression whose value identifies the session, such as request.headers["x-session-id"]. Requests with the same value go to the same provider, in all proxies, as long as it is not ejected. If the value is empty or no text, a provider is chosen as usual.',
  ),
})

/** Statuses after which another provider may succeed: limits, overload and timeouts. */
const usualStatuses: readonly number[] = [
  408,
  429,
  ...Array.from({ length: 100 }, (_, at) => 500 + at),
]

export function failoverRules(spec: Infer<typeof failoverConditions>): FailoverRules {
  const {
    statuses = usualStatuses,
    errorCodes = [],
    contextExceeded,
    contentFilter,
    modelNotFound,
  } = spec
  const firstTokenMs = parseDurationMs(spec.firstTokenTimeout)
  const idleMs = parseDurationMs(spec.idleTimeout)
  const retryAfterMs = parseDurationMs(spec.retryAfterOver)
  return {
    statuses,
    errorCodes,
    onContextExceeded: contextExceeded === true,
    onContentFilter: contentFilter === true,
    ...(modelNotFound === true && { onModelNotFound: true }),
    ...(firstTokenMs !== undefined && { firstTokenMs }),
    ...(idleMs !== undefined && { idleMs }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}
