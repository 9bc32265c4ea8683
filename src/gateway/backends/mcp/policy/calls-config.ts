/** Compiled settings for calls, as the proxy receives them. */
import {
  choice,
  count,
  flag,
  type Infer,
  list,
  map,
  optional,
  record,
  text,
} from '../../../../ground/base/shape.ts'
import { calloutTarget, directTarget } from '../../../../ground/model/shapes.ts'
import { shape as rateLimit } from '../../../policies/rate-limit/config.ts'
import { guard } from '../../ai/policy/config.ts'

const toolGuard = record({
  /** If omitted, the gateway's own patterns. */
  matches: optional(list(text)),
  hiddenCharacters: flag,
  hides: flag,
})
export type ToolGuardConfig = Infer<typeof toolGuard>

const repeats = record({ calls: count, unit: choice('Seconds', 'Minutes', 'Hours') })
const breaker = record({ consecutiveFailures: count, durationMs: count })

const approval = record({
  annotated: optional(choice('Destructive', 'NotReadOnly')),
  tools: list(text),
  when: optional(text),
  /** If omitted, the client asks its user. */
  webhook: optional(directTarget),
  timeoutMs: count,
})
export type ApprovalConfig = Infer<typeof approval>

const processor = record({
  target: calloutTarget,
  failsOpen: flag,
  /** Expressions by the name of the value. */
  metadata: map(text),
  /** Phases by method or pattern. */
  methods: map(choice('Off', 'Request', 'Response', 'Full')),
  /** Names of headers in lower case. If omitted, all headers are sent. */
  allowed: optional(list(text)),
  disallowed: list(text),
})
export type ProcessorConfig = Infer<typeof processor>

export const shape = record({
  requestGuards: list(guard),
  processors: optional(list(processor)),
  responseGuards: list(guard),
  toolGuard: optional(toolGuard),
  limits: optional(rateLimit),
  maxResultBytes: optional(count),
  truncates: flag,
  timeoutMs: optional(count),
  repeats: optional(repeats),
  breaker: optional(breaker),
  /** Whether records have the arguments of tools, masked. Not set without a guard that masks. */
  recordsArguments: optional(flag),
  approval: optional(approval),
})
export type CallsConfig = Infer<typeof shape>
