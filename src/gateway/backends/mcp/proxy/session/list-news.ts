/** Tells all threads of the process that the lists of a target have changed. */
import { outdateLists } from '../target/outdated-lists.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { ThreadChannel } from './threads.ts'

interface ListNotice {
  readonly backend: string
  readonly target: string
  /** The notification of the target. */
  readonly method: string
}

export class ListNews {
  readonly #channel: ThreadChannel<ListNotice>

  constructor(find: (backend: string, target: string) => McpTargetEntry | undefined) {
    this.#channel = new ThreadChannel<ListNotice>('lists', ({ backend, target, method }) => {
      const entry = find(backend, target)
      if (entry !== undefined) outdateLists(entry, method)
    })
    this.#channel.open()
  }

  publish(notice: ListNotice): void {
    this.#channel.publish(notice)
  }
}
