/** A decision in the form that `sluice decisions -o json` prints, one object per line. */

export interface RecordedHeader {
  readonly name: string
  /** Recorded if the configuration refers to the field. */
  readonly value?: string
  /** First 8 bytes of the keyed digest of the value, in hex. Credentials have none. */
  readonly digest?: string
}

/** An object whose policies a step applies. */
interface RecordedObject {
  /** `Kind namespace/name`. */
  readonly object: string
}

export interface RecordedStep {
  /** Such as `traffic.authorization`. */
  readonly step: string
  readonly from: readonly RecordedObject[]
  /** Digest of the compiled policies. Steps with the same digest decide alike. */
  readonly config: string
  /** `answer`: the step answered, failed, or had not finished when the request ended. */
  readonly verdict: 'pass' | 'answer'
  readonly notes: readonly string[]
}

/** An attempt that failed and was followed by another one. */
export interface RecordedAttempt {
  readonly endpoint: string
  /** `status 503`, or the code of the error. */
  readonly failure: string
  /** Name of the model provider, and the position of its group from 1, if it has a name. */
  readonly provider?: string
  readonly group?: number
}

export interface RecordedDecision {
  readonly id: string
  /** Whether texts or header fields are incomplete, because they are too long. */
  readonly isCut?: true
  /** RFC 3339, when the head of the request was complete. */
  readonly time: string
  readonly proxy: string
  readonly worker: number
  /** Setting under which the record was made: `sample`, `errors`, `all`, or a share such as `5%`. Old records lack it. */
  readonly setting?: string
  /** Number of requests that the record stands for; omitted if it is 1. */
  readonly weight?: number
  /** Log position of the configuration in force. */
  readonly position: number
  readonly request: {
    readonly method: string
    readonly host: string
    readonly path: string
    readonly query?: string
    readonly protocol: 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2'
    readonly scheme: 'http' | 'https'
    readonly port: number
    readonly source: string
    readonly headers: readonly RecordedHeader[]
    /** Identifies the key of the digests. */
    readonly digestKey: string
  }
  readonly route: {
    readonly gateway?: string
    readonly listener?: string
    readonly route?: string
    readonly rule?: number
    readonly ruleName?: string
    readonly backend?: string
    readonly endpoint?: string
  }
  readonly steps: readonly RecordedStep[]
  readonly attempts: readonly RecordedAttempt[]
  readonly response: {
    readonly status: number
    readonly reason: string
    readonly error?: string
    /** Why the gateway answered, such as the rule that matched. */
    readonly detail?: string
    readonly ending: string
    readonly requestBytes: number
    readonly responseBytes: number
    readonly durationMs: number
  }
  /** Fields of the access log that depend on the kind of the backend, such as `gen_ai.request.model`. */
  readonly details: Readonly<Record<string, string | number>>
}
