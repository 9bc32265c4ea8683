/** Differences between what a gateway did and what the simulator decides. */
import type { RecordedDecision } from '../../../src/past/decisions/record.ts'
import type { Simulation } from '../../../src/past/simulate/index.ts'
import type { TestRequest, TestResponse } from '../../support/http-client.ts'

export interface Sent {
  readonly id: string
  readonly port: number
  readonly isSecure: boolean
  readonly request: TestRequest
  readonly response: TestResponse
}

const mayBeUndecided = /extAuth|it calls another service|chosen at random/
const mayChangeRoute = /^route: traffic\.(?:extAuth|transformation) may have changed it$/

export class Differences {
  readonly all: string[] = []
  /** Have the limits of the gateway and of the simulator counted the same requests? */
  #countsEqually = true
  undecidedRecords = 0
  undecidedRequests = 0
  answered = 0

  /** Compares the simulation of a record with the record. */
  ofRecord(record: RecordedDecision, { outcome, steps, undecided }: Simulation): void {
    const { route, response } = record
    if (undecided.length > 0) {
      this.undecidedRecords++
      // The service or a claim decides a header field, and routes match it.
      if (!undecided.every((reason) => mayChangeRoute.test(reason))) {
        this.#add(record.id, 'record', 'a verdict', undecided)
      }
      return
    }
    const isForwarded = route.endpoint !== undefined
    if (!isForwarded) this.answered++
    const backend = outcome.backend === undefined ? {} : { backend: outcome.backend }
    this.#expect(
      record.id,
      'record',
      {
        verdict: isForwarded ? 'forward' : 'answer',
        status: response.status,
        gateway: route.gateway,
        listener: route.listener,
        route: route.route,
        rule: route.rule,
        backend: route.backend,
        steps: record.steps.map(({ step, config, verdict }) => ({ step, config, verdict })),
      },
      {
        verdict: outcome.verdict,
        status: outcome.status,
        gateway: outcome.gateway,
        listener: outcome.listener,
        route: outcome.route,
        rule: outcome.rule,
        ...backend,
        steps: steps.map(({ step, config, verdict }) => ({ step, config, verdict })),
      },
    )
  }

  beginRound(): void {
    this.#countsEqually = true
  }

  /** Compares the simulation of a request with its response. */
  ofRequest(
    { id, response, isSecure }: Sent,
    record: RecordedDecision | undefined,
    { outcome, undecided }: Simulation,
  ): void {
    // The server name of the connection is not an input of the simulation.
    if (isSecure && response.status === 421) {
      this.#countsEqually = false
      return
    }
    if (outcome.verdict === 'undecided') {
      this.#countsEqually = false
      this.undecidedRequests++
      if (!undecided.every((reason) => mayBeUndecided.test(reason))) {
        this.#add(id, 'request', 'a verdict', undecided)
      }
      return
    }
    if (!this.#countsEqually && (response.status === 429 || outcome.status === 429)) return
    const isForwarded = record?.route.endpoint !== undefined
    const status = outcome.verdict === 'answer' ? { status: outcome.status } : {}
    this.#expect(
      id,
      'request',
      {
        verdict: isForwarded ? 'forward' : 'answer',
        ...(outcome.verdict === 'answer' && { status: response.status }),
      },
      { verdict: outcome.verdict, ...status },
    )
  }

  #expect(id: string, what: string, expected: object, actual: object): void {
    if (JSON.stringify(expected) !== JSON.stringify(actual)) this.#add(id, what, expected, actual)
  }

  #add(id: string, what: string, expected: unknown, actual: unknown): void {
    this.all.push(
      `${what} ${id}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(actual)}`,
    )
  }
}
