/** Records which sessions proxies report as ended, unless the log has them already. */
import { randomUUID } from 'node:crypto'
import { sessionsEnded } from '../../../events/index.ts'
import {
  type EndedReport,
  endedId,
  maxEndedAtOnce,
  maxEndedMs,
} from '../../ground/model/ended-sessions.ts'
import { newEvent } from '../log/index.ts'
import type { StartedPlane } from './parts.ts'

const writer = { source: '/sluice/xds', epoch: 0 } as const

export class EndedRecorder {
  readonly #writer: StartedPlane['writer']
  /** Part of event ids that is different in every run. */
  readonly #run = randomUUID()
  #count = 0

  constructor({ writer }: Pick<StartedPlane, 'writer'>) {
    this.#writer = writer
  }

  report(proxy: string, { issuer, clientId, entries: reported }: EndedReport): void {
    const latest = Date.now() + maxEndedMs
    const entries = reported.slice(0, maxEndedAtOnce).map(({ name, at, until }) => ({
      id: endedId(issuer, clientId, name),
      at,
      until: Math.min(until, latest),
    }))
    if (entries.length === 0) return
    const id = `0:${this.#run}:${++this.#count}:ended`
    const subject = { kind: 'Sessions', namespace: 'default', name: 'ended' }
    const data = { issuer, entries, reason: 'sign-out', author: proxy }
    this.#writer.enqueue('delivery', [newEvent(sessionsEnded, writer, subject, { id, data })])
  }
}
