import type { Attribute } from '../../../exchange/observe.ts'

/** A span that is over, as the exporter keeps it until it is sent. */
export interface FinishedSpan {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  /** Undefined for the root of a trace. */
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: 'server' | 'client'
  /** In milliseconds of `performance.now()`. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: readonly Attribute[]
  /** What went wrong in the gateway; undefined where nothing did. */
  readonly error: string | undefined
  /** Flags of the trace (W3C Trace Context). */
  readonly flags: number
}
