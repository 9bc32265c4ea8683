import type { StreamInfo, StreamState } from '@nats-io/jetstream'
import { LogError } from './log.ts'
import { findStream, type Link } from './nats-connection.ts'
import { type Deadline, persist } from './nats-writer.ts'

/** What a stream holds: from where to where, and what somebody has removed from in between. */
export class StreamExtent {
  readonly #link: Link
  /** When the stream was made; another one of its name has another time. */
  #created: string | undefined
  /** Sequences that were removed by themselves, as far as they were asked for; in order. */
  #holes: readonly number[] = []

  constructor(link: Link) {
    this.#link = link
  }

  /** @throws LogError `corrupt` where it is not the stream any more that was asked for first. */
  async info(deadline: Deadline): Promise<StreamInfo> {
    const { manager, stream } = this.#link
    const info = await persist(() => findStream(manager, stream), deadline)
    this.#created ??= info?.created
    if (info !== undefined && info.created === this.#created) return info
    const what = info === undefined ? 'was deleted' : 'was replaced by another one'
    throw new LogError('corrupt', `the stream ${what}; open the log again`)
  }

  /** Messages that were removed by themselves, and not with all before them; in order. */
  async holes(state: StreamState, deadline: Deadline): Promise<readonly number[]> {
    if ((state.num_deleted ?? 0) === this.#holes.length) return this.#holes
    const { manager, stream } = this.#link
    const ask = () => manager.streams.info(stream, { deleted_details: true })
    const info = await persist(ask, deadline)
    this.#holes = info.state.deleted ?? []
    return this.#holes
  }
}

/** The last message that is there. */
export function lastPresent(last: number, holes: readonly number[]): number {
  let end = last
  for (let at = holes.length - 1; at >= 0 && holes[at] === end; at--) end--
  return end
}
