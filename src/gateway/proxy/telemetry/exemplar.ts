/** Exemplars lead from a bucket of a histogram to the trace of a request in it. Types only. */

/** The trace of one recorded request. */
export interface Exemplar extends ExemplarTrace {
  /** Position of the bucket in the values of the series. */
  readonly bucket: number
  readonly value: number
  /** Milliseconds since 1970. */
  readonly atMs: number
}

/** The ids of a sampled span, in hexadecimal digits. */
export interface ExemplarTrace {
  readonly traceId: string
  readonly spanId: string
}
