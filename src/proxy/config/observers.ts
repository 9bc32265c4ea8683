import type { AccessLogRules, ObservedParts, TracingRules } from '../../exchange/observe.ts'
import type { Step } from '../../policies/define.ts'

/** What frontend policies of one Gateway want to be told of exchanges. */
export interface Observers {
  readonly accessLog: AccessLogRules | undefined
  readonly tracing: TracingRules | undefined
  /** What must be kept of messages for them. */
  readonly parts: ObservedParts
  /** Anything at all. */
  readonly isReading: boolean
}

const nothing: ObservedParts = {
  requestBody: false,
  responseBody: false,
  responseHead: false,
  modelTexts: false,
}

/** Where no policy asks for anything. */
export const noObservers: Observers = {
  accessLog: undefined,
  tracing: undefined,
  parts: nothing,
  isReading: false,
}

export function observersOf(steps: readonly Step[]): Observers {
  const accessLog = steps.find((step) => step.accessLog !== undefined)?.accessLog
  const tracing = steps.find((step) => step.tracing !== undefined)?.tracing
  if (accessLog === undefined && tracing === undefined) return noObservers
  const both = [accessLog?.parts ?? nothing, tracing?.parts ?? nothing]
  const parts: ObservedParts = {
    requestBody: both.some(({ requestBody }) => requestBody),
    responseBody: both.some(({ responseBody }) => responseBody),
    responseHead: both.some(({ responseHead }) => responseHead),
    modelTexts: both.some(({ modelTexts }) => modelTexts),
  }
  const isReading = parts.requestBody || parts.responseBody || parts.responseHead
  return { accessLog, tracing, parts, isReading }
}
