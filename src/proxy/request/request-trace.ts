import { randomBytes } from 'node:crypto'
import type { Exchange } from '../../exchange/exchange.ts'
import type { FinishedSpan } from '../telemetry/otlp/span.ts'

/** The trace that a request belongs to (W3C Trace Context), and its spans so far. */
export class RequestTrace {
  readonly traceId: string
  readonly spanId = newSpanId()
  readonly parentId: string | undefined
  readonly flags: number
  /** Spans of attempts that are over. */
  readonly finished: FinishedSpan[] = []
  attempt: AttemptSpan | undefined

  constructor(parent: TraceParent | undefined) {
    this.traceId = parent?.traceId ?? randomBytes(16).toString('hex')
    this.parentId = parent?.spanId
    this.flags = parent?.flags ?? 1
  }

  /** What a span of this trace tells whom it calls. */
  header(spanId: string): string {
    return `00-${this.traceId}-${spanId}-${this.flags.toString(16).padStart(2, '0')}`
  }

  /** The caller has decided that nothing of this trace is kept: ids go on, spans do not. */
  get isExported(): boolean {
    return (this.flags & 1) === 1
  }
}

interface AttemptSpan {
  readonly spanId: string
  readonly startedAt: number
  readonly to: string
}

interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly flags: number
}

export const newSpanId = (): string => randomBytes(8).toString('hex')

const traceFact = 'trace'

/** The trace of an exchange, for those who call others on its behalf. */
export function traceOf({ facts }: Exchange): RequestTrace | undefined {
  return facts.size === 0 ? undefined : (facts.get(traceFact) as RequestTrace | undefined)
}

/** The other way: from now on `traceOf` finds it. */
export function rememberTrace({ facts }: Exchange, trace: RequestTrace): void {
  facts.set(traceFact, trace)
}
