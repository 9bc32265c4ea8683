/** Logs certificates that are not valid or expire soon, once for each problem. */

import { objectKey, objectText } from '../../ground/model/names.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { type CertificateProblem, certificateProblems } from './certificate-dates.ts'

/** Changes come in groups, and each may touch many certificates. */
const settleMs = 1_000
const repeatMs = 3_600_000

interface CertificateWatchOptions {
  readonly objects: () => Iterable<ObjectState>
  readonly onNotice: (text: string) => void
  /** Called after each check with all problems, and with those that the check before did not find. */
  readonly onChecked?: (
    all: readonly CertificateProblem[],
    fresh: readonly CertificateProblem[],
  ) => void
}

export class CertificateWatch {
  readonly #options: CertificateWatchOptions
  #logged: ReadonlySet<string> = new Set()
  #timer: NodeJS.Timeout | undefined
  /** Whether the timer is for a change, not for the hourly check. */
  #isDue = false

  constructor(options: CertificateWatchOptions) {
    this.#options = options
  }

  /** Called after changes. Checks all certificates soon, and from then on every hour. */
  update(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.#checkAfter(settleMs)
  }

  #checkAfter(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#check(), ms).unref()
  }

  #check(): void {
    this.#isDue = false
    const found = new Set<string>()
    const all: CertificateProblem[] = []
    const fresh: CertificateProblem[] = []
    for (const state of this.#options.objects()) {
      for (const problem of certificateProblems(state, Date.now())) {
        const { ref, message } = problem
        all.push(problem)
        const key = `${objectKey(ref)} ${message}`
        found.add(key)
        if (this.#logged.has(key)) continue
        fresh.push(problem)
        const use = 'The gateway uses it unchanged, but peers that verify it may refuse it.'
        this.#options.onNotice(`${objectText(ref)}: ${message}. ${use}`)
      }
    }
    this.#logged = found
    this.#options.onChecked?.(all, fresh)
    this.#checkAfter(repeatMs)
  }

  close(): void {
    clearTimeout(this.#timer)
  }
}
